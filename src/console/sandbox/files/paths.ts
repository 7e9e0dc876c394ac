export const joinPath = (directory: string, name: string): string => `${directory.replace(/\/$/, '')}/${name}`

/** Lists a directory and all directories above it, from the root on. */
export function parentsOf(directory: string): { name: string; path: string }[] {
  const names = directory.split('/').filter(Boolean)
  return [
    { name: '/', path: '/' },
    ...names.map((name, index) => ({ name, path: `/${names.slice(0, index + 1).join('/')}` })),
  ]
}

/** Returns the address of a file's bytes. */
export const rawUrl = (sandboxId: string, path: string): string =>
  `/v1/sandboxes/${sandboxId}/files?${new URLSearchParams({ path, format: 'stream' })}`
