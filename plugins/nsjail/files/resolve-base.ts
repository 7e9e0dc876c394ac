import { lstatSync } from 'node:fs'
import { lstat, realpath } from 'node:fs/promises'
import { isAbsolute, join } from 'node:path'
import { ApiError } from '../../../src/errors.ts'
import { type Host, namedBasesDirectory } from '../host/layout.ts'
import { isLayerPath } from '../jail/layer-path.ts'

/** Name of the base that is made of the host. */
export const HOST_BASE = 'host'

export const isBaseName = (name: string) => /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(name) && name !== HOST_BASE

/**
 * Finds the real path of a root file system that an environment may be based on, by its absolute path or by the name that it was
 * added under. Throws invalid_request with the reason.
 */
export async function resolveBase(host: Host, base: string): Promise<string> {
  const refuse = (reason: string) => new ApiError('invalid_request', `The base ${base} ${reason}.`)
  const isNamed = !isAbsolute(base)
  if (isNamed && !isBaseName(base)) throw refuse('is neither an absolute path nor the name of a base')
  const path = await realpath(isNamed ? join(namedBasesDirectory(host.dataDirectory), base) : base).catch(
    () => undefined,
  )
  if (path === undefined && isNamed) throw refuse(`is not there: add it with threadbox base add ${base} FILE`)
  const kind = path === undefined ? undefined : await lstat(path)
  if (path === undefined || !kind?.isDirectory()) throw refuse('is not a directory')
  if (`${host.dataDirectory}/`.startsWith(path === '/' ? path : `${path}/`)) {
    throw refuse("holds the server's own data")
  }
  if (!host.isRoot && kind.uid !== host.uid) {
    throw refuse('belongs to another user; without root, sandboxes can only be based on directories of your own')
  }
  if (!host.isRoot && !isLayerPath(path)) throw refuse('has a path that is too long or has a comma, colon or backslash')
  const flaw = findFlaw(path)
  if (flaw) throw refuse(flaw)
  return path
}

/** Finds the reason why a directory cannot be a sandbox's root file system. Undefined when it can. */
export function findFlaw(path: string): string | undefined {
  const look = (name: string) => lstatSync(join(path, name), { throwIfNoEntry: false })
  if (!look('bin') && !look('usr')) return 'has no /bin and no /usr: it is not a root file system'
  // nsjail mounts there, and would follow a link.
  const bad = ['proc', 'dev'].find(name => look(name)?.isDirectory() === false)
  return bad && `has a /${bad} that is not a directory`
}
