import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { guestVersion, installGuest, loaderName } from '../../src/guest/host/install.ts'
import { objectOf } from '../../src/read/json.ts'
import type { DockerEngine } from './engine.ts'
import { EngineError, isConflict, isMissing } from './failure.ts'
import { labels } from './labels.ts'
import { type TarEntry, writeTar } from './tar.ts'

/**
 * The volume with the guests of all servers that use an engine: a directory for each build, and for each data directory a link
 * to its server's build. So a container gets the guest of a new build with its next start.
 */
export const GUEST_VOLUME = 'threadbox-guest'
export const guestLinkName = (dataId: string): string => `for-${dataId}`

export interface GuestVolume {
  /** Fills the volume for this build and data directory unless that is done, by a container of this image. */
  install(imageId: string): Promise<void>
  /** To be called when the guest in it does not run or is missing: the next `install` writes it again. */
  forget(): void
}

const MOUNTED_AT = '/threadbox-guest'
/** The lock: one container at a time has this name. */
const FILLER = `${GUEST_VOLUME}-filler`
/** A filler of another server that is older than this was left by a crash. */
const FILLER_STALE_AFTER_MS = 120_000
const POLL_MS = 200

export interface GuestVolumeOptions {
  engine: DockerEngine
  executable: string
  dataId: string
}

export function createGuestVolume({ engine, executable, dataId }: GuestVolumeOptions): GuestVolume {
  let filled: Promise<void> | undefined
  let isSuspect = false

  const fill = async (imageId: string): Promise<void> => {
    const version = await guestVersion(executable)
    // Written last: a directory without this file is an unfinished copy.
    const complete = `complete-${version}`
    const filler = await openFiller(engine, imageId, dataId)
    try {
      if (!isSuspect && (await hasFile(engine, filler, `${guestLinkName(dataId)}/${complete}`))) return
      if (isSuspect || !(await hasFile(engine, filler, `${version}/${complete}`))) {
        await withGuest(executable, files => {
          const entries = files.map(each => ({ ...each, name: `${version}/${each.name}` }))
          const directory = { name: `${version}/`, mode: 0o755 }
          return put(engine, filler, [directory, ...entries, { name: `${version}/${complete}`, mode: 0o644 }])
        })
      }
      await put(engine, filler, [{ name: guestLinkName(dataId), mode: 0o777, target: version }])
      isSuspect = false
    } finally {
      await engine.call('DELETE', `/containers/${filler}`, { query: { force: 'true' } })
    }
  }

  return {
    install(imageId) {
      filled ??= fill(imageId).catch(error => {
        filled = undefined
        throw error
      })
      return filled
    },
    forget() {
      filled = undefined
      isSuspect = true
    },
  }
}

/** Removes the filler that a killed server on this data directory has left. */
export async function removeFiller(engine: DockerEngine, dataId: string): Promise<void> {
  const filler = await findFiller(engine)
  if (filler?.dataId !== dataId) return
  await engine.call('DELETE', `/containers/${filler.id}`, { query: { force: 'true' } })
}

/** Creates a container that mounts the volume and never runs. It has the lock until it is removed. */
async function openFiller(engine: DockerEngine, imageId: string, dataId: string): Promise<string> {
  const body = {
    Image: imageId,
    Labels: { [labels.data]: dataId },
    Entrypoint: ['/none'],
    Cmd: [],
    HostConfig: {
      NetworkMode: 'none',
      Mounts: [{ Type: 'volume', Source: GUEST_VOLUME, Target: MOUNTED_AT, VolumeOptions: { NoCopy: true } }],
    },
  }
  for (const startedAt = performance.now(); ; await Bun.sleep(POLL_MS)) {
    try {
      const { Id } = objectOf(await engine.call('POST', '/containers/create', { query: { name: FILLER }, body })) ?? {}
      if (typeof Id === 'string') return Id
      throw new EngineError(500, 'the engine made a container without an id')
    } catch (error) {
      if (!isConflict(error)) throw error
      if (performance.now() - startedAt < FILLER_STALE_AFTER_MS && (await findFiller(engine))?.dataId !== dataId)
        continue
      // It belongs to a dead server on this data directory, or to one that takes too long.
      await engine.call('DELETE', `/containers/${FILLER}`, { query: { force: 'true' } })
    }
  }
}

/** The filler that exists now, with its server's data directory id. */
async function findFiller(engine: DockerEngine): Promise<{ id: string; dataId: unknown } | undefined> {
  try {
    const { Id, Config } = objectOf(await engine.call('GET', `/containers/${FILLER}/json`)) ?? {}
    return { id: String(Id), dataId: objectOf(objectOf(Config)?.Labels)?.[labels.data] }
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

async function hasFile(engine: DockerEngine, filler: string, name: string): Promise<boolean> {
  try {
    await engine.call('HEAD', `/containers/${filler}/archive`, { query: { path: `${MOUNTED_AT}/${name}` } })
    return true
  } catch (error) {
    if (isMissing(error)) return false
    throw error
  }
}

async function put(engine: DockerEngine, filler: string, entries: readonly TarEntry[]): Promise<void> {
  await engine.call('PUT', `/containers/${filler}/archive`, { query: { path: MOUNTED_AT }, archive: writeTar(entries) })
}

/**
 * Calls `work` with the guest's files, which exist until it resolves. Everyone can execute the loader, only root can read it: so
 * Linux keeps the processes that the bridge's user starts by it from being read or traced from their first moment on.
 */
async function withGuest(executable: string, work: (files: TarEntry[]) => Promise<void>): Promise<void> {
  const parent = await mkdtemp(join(tmpdir(), 'threadbox-guest-'))
  try {
    const directory = join(parent, 'guest')
    await installGuest(directory, executable)
    const modeOf = (name: string) => (name === loaderName ? 0o711 : 0o755)
    const names = await readdir(directory)
    await work(names.map(name => ({ name, mode: modeOf(name), content: Bun.file(join(directory, name)) })))
  } finally {
    await rm(parent, { recursive: true })
  }
}
