import { posix } from 'node:path'
import { excerpt } from '../../../bounds.ts'
import { ApiError } from '../../../errors.ts'
import type { EnvironmentFiles } from '../../../plugin-api/index.ts'
import { readBytes } from '../../../read/bytes.ts'

/** The user inside the sandbox in whose name a request acts. */
export interface SandboxUser {
  name: string
  /** The absolute path at which relative paths start. */
  home: string
}

const DEFAULT_USER = 'user'

/** The users that every sandbox has. */
const homes: Readonly<Record<string, string>> = { user: '/home/user', root: '/root' }

const MAX_PASSWD_BYTES = 1024 * 1024

/**
 * The user name in a request's Authorization header; without one, the default user. Throws unauthorized when the header has no
 * name.
 */
export function userNameOf(request: Request): string {
  const authorization = request.headers.get('authorization')
  if (authorization === null) return DEFAULT_USER
  const [, encoded] = /^Basic +([A-Za-z0-9+/=_-]{1,1000})$/i.exec(authorization) ?? []
  const [name] = Buffer.from(encoded ?? '', 'base64')
    .toString('utf8')
    .split(':')
  if (!name) throw new ApiError('unauthorized', 'Authorization: names no user, as Basic base64("user:") does')
  return name
}

/** Finds a user of a sandbox; without a name, the default one. Throws unauthorized for an unknown name. */
export async function findUser(files: EnvironmentFiles, name: string = DEFAULT_USER): Promise<SandboxUser> {
  const known = Object.hasOwn(homes, name) ? homes[name] : undefined
  const home = known ?? (await readHome(files, name))
  if (home === undefined) throw new ApiError('unauthorized', `invalid username: '${excerpt(name)}'`)
  return { name, home }
}

async function readHome(files: EnvironmentFiles, name: string): Promise<string | undefined> {
  const { body } = await files.read('/etc/passwd')
  const text = (await readBytes(body, MAX_PASSWD_BYTES))?.toString('utf8') ?? ''
  const line = text.split('\n').find(each => each.startsWith(`${name}:`))
  const home = line?.split(':')[5]
  return home?.startsWith('/') ? home : undefined
}

/** Resolves a path for a user: a relative path and one that begins with `~` start at the user's home. Throws invalid_request. */
export function resolvePath({ home }: SandboxUser, path: string): string {
  const wrong = (what: string) => new ApiError('invalid_request', `path: ${what}`, { field: 'path' })
  if (path.includes('\0')) throw wrong('has the character U+0000')
  if (path.length > 4096) throw wrong('has more than 4096 characters')
  if (path === '~' || path.startsWith('~/')) return posix.resolve(home, path.slice(2))
  if (path.startsWith('~')) throw wrong('the home of another user cannot be named by ~')
  return posix.resolve(home, path)
}
