import type { Server } from '../server.ts'

/** A sandbox, and how what is inside is addressed. */
export interface Place {
  server: Server
  /** The sandbox's id. */
  id: string
  /** Where it lies below `/v1`. */
  path: string
  defaultWorkingDirectory: string
  /** A path inside; a relative one begins at the default working directory. */
  absolute(path: string): string
}

export function createPlace(server: Server, { id, cwd }: { id: string; cwd: string }): Place {
  const directory = cwd === '/' ? cwd : cwd.replace(/\/+$/, '')
  return {
    server,
    id,
    path: `/sandboxes/${encodeURIComponent(id)}`,
    defaultWorkingDirectory: directory,
    absolute: path => (path.startsWith('/') ? path : `${directory === '/' ? '' : directory}/${path}`),
  }
}
