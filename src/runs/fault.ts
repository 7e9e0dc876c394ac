/** Where an unknown error comes from. Not its message: that may hold what was said. */
export function faultOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error
  const frames = error.stack?.split('\n').filter(line => /^\s+at /.test(line)) ?? []
  return [error.name, ...frames.slice(0, 5).map(line => line.trim())].join(' ')
}
