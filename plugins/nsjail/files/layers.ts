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

const layerNames: Layers = { upper: 'upper', work: 'work', local: 'local', localWork: 'local-work' }

export const toLayers = (disk: string): Layers => ({
  upper: join(disk, layerNames.upper),
  work: join(disk, layerNames.work),
  local: join(disk, layerNames.local),
  localWork: join(disk, layerNames.localWork),
})

/** Ids of the jail's root, as the host has them. */
export interface Owner {
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

const RESOLVERS = 'etc/resolv.conf'
const rootFiles = ['etc/hostname', 'etc/hosts', RESOLVERS]

/** Directories where package managers install; made beforehand because the host's own belong to the host's root. */
const localDirectories = [
  ...['bin', 'sbin', 'etc', 'games', 'include', 'lib', 'lib/node_modules', 'libexec', 'src', 'share'],
  ...['share/doc', 'share/man', 'share/man/man1', 'share/man/man5', 'share/man/man7', 'share/applications'],
]

/** A directory, or with `content` a file, of a new disk. Its path is relative to the disk. */
export interface LayerEntry {
  path: string
  mode: number
  content?: string
}

export interface LayersSpec {
  base: string
  isHostBase: boolean
  /** The disk lies on layers that have all of these already. */
  hasLayers?: boolean
}

/**
 * Lists what a new disk, which no jail has seen, is filled with: the layers, what the base lacks of the expected directories, and
 * with `isHostBase` the directories of /usr/local. Parents come first.
 */
export function planLayers({ base, isHostBase, hasLayers = false }: LayersSpec): LayerEntry[] {
  const entries = new Map<string, LayerEntry>()
  const add = (entry: LayerEntry) => void entries.set(entry.path, entry)
  const hasInUpper = (path: string) => entries.has(`upper/${path}`)
  for (const path of Object.values(layerNames)) add({ path, mode: 0o755 })
  if (hasLayers) return [...entries.values()]
  for (const { path, mode } of expected) {
    // A directory that the base has behind a link is left to the base.
    if (hasLinkAbove(base, path) || findStats(join(base, path))) continue
    const parent = path.slice(0, Math.max(0, path.lastIndexOf('/')))
    const inBase = parent ? findStats(join(base, parent)) : undefined
    if (inBase && !hasInUpper(parent)) add({ path: `upper/${parent}`, mode: inBase.mode & 0o7777 })
    add({ path: `upper/${path}`, mode })
  }
  for (const path of rootFiles) {
    const kind = findStats(join(base, path))
    // A base's own file names the resolvers of the machine where the base was made, or is a link to a missing file.
    const isReplaced = path === RESOLVERS && !isHostBase && !kind?.isDirectory()
    if (hasLinkAbove(base, path) || (kind && !isReplaced && (kind.size > 0 || !kind.isFile()))) continue
    const parent = path.slice(0, path.lastIndexOf('/'))
    if (!hasInUpper(parent)) add({ path: `upper/${parent}`, mode: 0o755 })
    add({ path: `upper/${path}`, mode: 0o644, content: plainFiles[path] ?? '' })
  }
  if (isHostBase) for (const path of listHostLocalDirectories()) add({ path: `local/${path}`, mode: 0o755 })
  return [...entries.values()]
}

/** Fills a new disk as planned. */
export function makeLayers(disk: string, plan: readonly LayerEntry[]): void {
  for (const { path, mode, content } of plan) {
    const target = join(disk, path)
    if (content === undefined) mkdirSync(target, { mode })
    else writeFileSync(target, content, { mode, flag: 'wx' })
    // mkdir obeys the server's umask; chmod does not.
    chmodSync(target, mode)
  }
}

/** Gives a new disk to the jail's root. Its `upper`, which a plan begins with, is the last that changes. */
export function ownLayers(disk: string, plan: readonly LayerEntry[], { firstUid, firstGid }: Owner): void {
  for (const { path } of plan.toReversed()) chownSync(join(disk, path), firstUid, firstGid)
}

/** Fills a directory that is a new disk. Everything belongs to the jail's root. */
export function prepareLayers({ disk, owner, ...spec }: LayersSpec & { disk: string; owner: Owner }): void {
  const plan = planLayers(spec)
  makeLayers(disk, plan)
  ownLayers(disk, plan, owner)
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
 * Throws when a jail has replaced a directory that is mounted over: nsjail, as the host's root or user, would follow a link there.
 * The uppermost layer comes first. To be called while no process of the jail runs.
 */
export function checkMountTargets(layers: readonly string[], targets: readonly string[]): void {
  for (const target of targets) {
    const kind = layers.map(layer => findStats(join(layer, target))).find(each => each !== undefined)
    if (kind?.isDirectory()) continue
    throw new ApiError('sandbox_unavailable', `${target} in the sandbox is not a directory, so it cannot start.`)
  }
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
