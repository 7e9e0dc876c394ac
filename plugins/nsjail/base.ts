import { lstat, realpath } from 'node:fs/promises'
import { isAbsolute } from 'node:path'
import { ApiError } from '../../src/errors.ts'
import type { Ground } from './layout.ts'

/** The real path of a root file system on the host that an environment may be based on. */
export async function resolveBase(ground: Ground, base: string): Promise<string> {
  const refuse = (reason: string) => new ApiError('invalid_request', `The base ${base} ${reason}.`)
  if (!isAbsolute(base)) throw refuse('is not an absolute path')
  const path = await realpath(base).catch(() => undefined)
  const kind = path === undefined ? undefined : await lstat(path)
  if (path === undefined || !kind?.isDirectory()) throw refuse('is not a directory')
  if (`${ground.dataDirectory}/`.startsWith(path === '/' ? path : `${path}/`)) {
    throw refuse("holds the server's own data")
  }
  if (!ground.root && kind.uid !== ground.uid) {
    throw refuse('belongs to another user; without root, sandboxes can only be based on directories of your own')
  }
  return path
}
