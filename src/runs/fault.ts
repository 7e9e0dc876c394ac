/** The place that an unknown error comes from. Not its message, which may quote what a user or an agent wrote. */
export function describeFault(error: unknown): string {
  if (!(error instanceof Error)) return typeof error
  const frames = error.stack?.split('\n').filter(line => /^\s+at /.test(line)) ?? []
  return [error.name, ...frames.slice(0, 5).map(line => line.trim())].join(' ')
}
