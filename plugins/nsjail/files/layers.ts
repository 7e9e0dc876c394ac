import { chmodSync, chownSync, lstatSync, mkdirSync, readdirSync, type Stats, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ApiError } from '../../../src/errors.ts'
import { erase } from '../host/erase.ts'
import { plainFiles } from './etc-files.ts'

/** The directories of a jail's disk: what its overlays write, and their work directories. */
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

/** Ids of the jail's root, as the host has them. */
interface Owner {
  firstUid: number
  firstGid: number
}

/** Directories that programs in every jail expect. */
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

export interface NewLayers {
  disk: string
  base: string
  owner: Owner
  isHostBase: boolean
}

/**
 * Fills a new disk, which no jail has seen: the layers, what the base lacks of the expected directories, and with
 * `isHostBase` the directories of /usr/local. Everything belongs to the jail's root.
 */
export function prepareLayers(newLayers: NewLayers): void {
  const { disk, owner } = newLayers
  const layers = toLayers(disk)
  for (const path of Object.values(layers)) makeDirectory(path, 0o755, owner)
  for (const { path, mode } of expected) completeDirectory(newLayers, path, mode)
  for (const path of rootFiles) completeFile(newLayers, path)
  if (newLayers.isHostBase) {
    for (const path of listHostLocalDirectories()) makeDirectory(join(layers.local, path), 0o755, owner)
  }
}

/** Empties the overlays' work directories: what a failed file system has left there keeps overlays read-only. No jail may run. */
export async function renewWork(disk: string, owner: Owner): Promise<void> {
  for (const [name, path] of Object.entries(toLayers(disk))) {
    if (!/work$/i.test(name)) continue
    await erase(path)
    makeDirectory(path, 0o755, owner)
  }
}

/**
 * Throws when a jail has replaced a directory that is mounted over: nsjail, as the host's root or user, would follow a link
 * there. To be called while no process of the jail runs.
 */
export function checkMountTargets(upper: string, base: string, targets: readonly string[]): void {
  for (const target of targets) {
    const kind = findStats(join(upper, target)) ?? findStats(join(base, target))
    if (kind?.isDirectory()) continue
    throw new ApiError('sandbox_unavailable', `${target} in the sandbox is not a directory, so it cannot start.`)
  }
}

/** Makes a directory that the base lacks. A directory that the base has behind a link is left to the base. */
function completeDirectory({ disk, base, owner }: NewLayers, path: string, mode: number): void {
  const { upper } = toLayers(disk)
  if (hasLinkAbove(base, path) || findStats(join(base, path))) return
  const parent = path.slice(0, Math.max(0, path.lastIndexOf('/')))
  const inBase = parent ? findStats(join(base, parent)) : undefined
  if (inBase && !findStats(join(upper, parent))) makeDirectory(join(upper, parent), inBase.mode & 0o7777, owner)
  makeDirectory(join(upper, path), mode, owner)
}

function completeFile({ disk, base, owner }: NewLayers, path: string): void {
  const { upper } = toLayers(disk)
  const content = plainFiles[path] ?? ''
  const kind = findStats(join(base, path))
  if (hasLinkAbove(base, path) || (kind && (kind.size > 0 || !kind.isFile()))) return
  const parent = path.slice(0, path.lastIndexOf('/'))
  if (!findStats(join(upper, parent))) makeDirectory(join(upper, parent), 0o755, owner)
  writeFileSync(join(upper, path), content, { mode: 0o644, flag: 'wx' })
  chownSync(join(upper, path), owner.firstUid, owner.firstGid)
}

function hasLinkAbove(base: string, path: string): boolean {
  const parts = path.split('/')
  return parts.slice(1).some((_, index) => findStats(join(base, ...parts.slice(0, index + 1)))?.isSymbolicLink())
}

/** The common directories and the host's own top-level ones, without those that are links on the host. */
function listHostLocalDirectories(): string[] {
  return [...new Set([...localDirectories, ...pythonDirectories(), ...namesIn('/usr/local')])]
    .filter(path => !hasLinkAbove('/usr/local', path) && (findStats(join('/usr/local', path))?.isDirectory() ?? true))
    .sort()
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

function findStats(path: string): Stats | undefined {
  return lstatSync(path, { throwIfNoEntry: false })
}

function makeDirectory(path: string, mode: number, owner: Owner): void {
  mkdirSync(path, { mode })
  // mkdir obeys the server's umask; this does not.
  chmodSync(path, mode)
  chownSync(path, owner.firstUid, owner.firstGid)
}
