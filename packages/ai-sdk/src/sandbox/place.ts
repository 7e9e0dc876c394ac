import { withoutEndSlashes } from '../end-slashes.ts'
import type { Server } from '../server.ts'

/** A sandbox, with its address on the server. */
export interface Place {
  server: Server
  /** The sandbox's id. */
  id: string
  /** The sandbox's path below `/v1`. */
  path: string
  defaultWorkingDirectory: string
  /** Makes a path inside absolute; a relative one starts at the default working directory. */
  absolute(path: string): string
}

export function createPlace(server: Server, { id, cwd }: { id: string; cwd: string }): Place {
  const directory = cwd === '/' ? cwd : withoutEndSlashes(cwd)
  return {
    server,
    id,
    path: `/sandboxes/${encodeURIComponent(id)}`,
    defaultWorkingDirectory: directory,
    absolute: path => (path.startsWith('/') ? path : `${directory === '/' ? '' : directory}/${path}`),
  }
}
