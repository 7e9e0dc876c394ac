import { chmodSync, chownSync, lstatSync, mkdirSync, readdirSync, type Stats, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ApiError } from '../../../src/errors.ts'
import { erase } from '../host/erase.ts'
import { plainFiles } from './etc-files.ts'

/** The directories of a jail's disk: what overlays write, and the room they work in. */
export interface Layers {
  upper: string
  work: string
  local: string
  localWork: string
}

export const toLayers = (disk: string): Layers => ({
  upper: join(disk, 'upper'),
  work: join(disk, 'work'),
  local: join(disk, 'local'),
  localWork: join(disk, 'local-work'),
})

/** The ids outside of the jail's root. */
interface Owner {
  firstUid: number
  firstGid: number
}

/** What every root must have; the jail's programs expect it. */
const expected = [
  { path: 'proc', mode: 0o755 },
  { path: 'dev', mode: 0o755 },
  { path: 'tmp', mode: 0o1777 },
  { path: 'root', mode: 0o700 },
  { path: 'home', mode: 0o755 },
  { path: 'home/user', mode: 0o755 },
  { path: 'etc', mode: 0o755 },
]

const rootFiles = ['etc/hostname', 'etc/hosts', 'etc/resolv.conf']

/** Directories where package managers install; made beforehand because the host's own belong to the host's root. */
const localDirectories = [
  ...['bin', 'sbin', 'etc', 'games', 'include', 'lib', 'lib/node_modules', 'libexec', 'src', 'share'],
  ...['share/doc', 'share/man', 'share/man/man1', 'share/man/man5', 'share/man/man7', 'share/applications'],
]

/**
 * Fills a new disk, which no jail has seen: the layers, what the base lacks of the expected directories, and with
 * `isHostBase` the directories of /usr/local. Everything belongs to the jail's root.
 */
export function prepareLayers(disk: string, base: string, owner: Owner, isHostBase: boolean): void {
  const layers = toLayers(disk)
  for (const path of Object.values(layers)) makeDirectory(path, 0o755, owner)
  for (const { path, mode } of expected) completeDirectory(layers.upper, base, path, mode, owner)
  for (const path of rootFiles) completeFile(layers.upper, base, path, owner)
  if (isHostBase) {
    for (const path of hostLocalDirectories()) makeDirectory(join(layers.local, path), 0o755, owner)
  }
}

/** Gives the overlays empty room to work in: what a file system that failed has left there keeps them read-only. No jail runs. */
export async function renewWork(disk: string, owner: Owner): Promise<void> {
  for (const [name, path] of Object.entries(toLayers(disk))) {
    if (!/work$/i.test(name)) continue
    await erase(path)
    makeDirectory(path, 0o755, owner)
  }
}

/**
 * Refuses to start a jail that has put something else where it is mounted: nsjail, as the host's root or user, would
 * follow a link there. To be called while no process of the jail runs.
 */
export function checkMountTargets(upper: string, base: string, targets: readonly string[]): void {
  for (const target of targets) {
    const kind = look(join(upper, target)) ?? look(join(base, target))
    if (kind?.isDirectory()) continue
    throw new ApiError('sandbox_unavailable', `${target} in the sandbox is not a directory, so it cannot start.`)
  }
}

/** A directory that the base lacks is made; one that it has behind a link is left to the base. */
function completeDirectory(upper: string, base: string, path: string, mode: number, owner: Owner): void {
  if (hasLinkAbove(base, path) || look(join(base, path))) return
  const parent = path.slice(0, Math.max(0, path.lastIndexOf('/')))
  const inBase = parent ? look(join(base, parent)) : undefined
  if (inBase && !look(join(upper, parent))) makeDirectory(join(upper, parent), inBase.mode & 0o7777, owner)
  makeDirectory(join(upper, path), mode, owner)
}

function completeFile(upper: string, base: string, path: string, owner: Owner): void {
  const content = plainFiles[path] ?? ''
  const kind = look(join(base, path))
  if (hasLinkAbove(base, path) || (kind && (kind.size > 0 || !kind.isFile()))) return
  const parent = path.slice(0, path.lastIndexOf('/'))
  if (!look(join(upper, parent))) makeDirectory(join(upper, parent), 0o755, owner)
  writeFileSync(join(upper, path), content, { mode: 0o644, flag: 'wx' })
  chownSync(join(upper, path), owner.firstUid, owner.firstGid)
}

function hasLinkAbove(base: string, path: string): boolean {
  const parts = path.split('/')
  return parts.slice(1).some((_, index) => look(join(base, ...parts.slice(0, index + 1)))?.isSymbolicLink())
}

let knownLocal: string[] | undefined

/** The common directories and the host's own top-level ones, less what the host has as a link. */
function hostLocalDirectories(): string[] {
  knownLocal ??= [...new Set([...localDirectories, ...pythonDirectories(), ...namesIn('/usr/local')])]
    .filter(path => !hasLinkAbove('/usr/local', path) && (look(join('/usr/local', path))?.isDirectory() ?? true))
    .sort()
  return knownLocal
}

function pythonDirectories(): string[] {
  const versions = namesIn('/usr/lib').filter(name => /^python3\.\d+$/.test(name))
  return versions.flatMap(name => [`lib/${name}`, `lib/${name}/dist-packages`, `lib/${name}/site-packages`])
}

function namesIn(path: string): string[] {
  try {
    return readdirSync(path)
  } catch {
    return []
  }
}

function look(path: string): Stats | undefined {
  return lstatSync(path, { throwIfNoEntry: false })
}

function makeDirectory(path: string, mode: number, owner: Owner): void {
  mkdirSync(path, { mode })
  // Again, because the server's umask must not close it.
  chmodSync(path, mode)
  chownSync(path, owner.firstUid, owner.firstGid)
}
