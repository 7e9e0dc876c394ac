export const joinPath = (directory: string, name: string): string => `${directory.replace(/\/$/, '')}/${name}`

/** A directory and all above it, from the root on. */
export function parentsOf(directory: string): { name: string; path: string }[] {
  const names = directory.split('/').filter(Boolean)
  return [
    { name: '/', path: '/' },
    ...names.map((name, index) => ({ name, path: `/${names.slice(0, index + 1).join('/')}` })),
  ]
}

/** Where the bytes of a file are. */
export const rawUrl = (sandboxId: string, path: string): string =>
  `/v1/sandboxes/${sandboxId}/files?${new URLSearchParams({ path, format: 'stream' })}`
