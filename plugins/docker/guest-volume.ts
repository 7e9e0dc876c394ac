import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { guestVersion, installGuest, loaderName } from '../../src/guest/host/install.ts'
import { objectOf } from '../../src/read/json.ts'
import type { DockerEngine } from './engine.ts'
import { EngineError, isConflict, isMissing } from './failure.ts'
import { labels } from './labels.ts'
import { type TarEntry, tarOf } from './tar.ts'

/**
 * The volume that holds the guests of all servers that use an engine: a directory for each build, and for each data
 * directory a link to the one of its server's build. So a container gets another guest with its next start.
 */
export const GUEST_VOLUME = 'threadbox-guest'
export const linkOf = (dataId: string): string => `for-${dataId}`

export interface GuestVolume {
  /** Fills it for this build and data directory, unless it is, with a container of this image. */
  bring(imageId: string): Promise<void>
  /** What is in it does not run, or is not there: the next `bring` writes it again, whatever it looks like. */
  forget(): void
}

const MOUNTED_AT = '/threadbox-guest'
/** The lock: one container at a time has this name. */
const FILLER = `${GUEST_VOLUME}-filler`
/** Another server's filling that takes longer than this was cut short. */
const FILLED_WITHIN_MS = 120_000
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
    // Written last: without it, what is there is no more than a try.
    const complete = `complete-${version}`
    const filler = await openFiller(engine, imageId, dataId)
    try {
      if (!isSuspect && (await isThere(engine, filler, `${linkOf(dataId)}/${complete}`))) return
      if (isSuspect || !(await isThere(engine, filler, `${version}/${complete}`))) {
        await withGuest(executable, files => {
          const entries = files.map(each => ({ ...each, name: `${version}/${each.name}` }))
          const directory = { name: `${version}/`, mode: 0o755 }
          return put(engine, filler, [directory, ...entries, { name: `${version}/${complete}`, mode: 0o644 }])
        })
      }
      await put(engine, filler, [{ name: linkOf(dataId), mode: 0o777, target: version }])
      isSuspect = false
    } finally {
      await engine.call('DELETE', `/containers/${filler}`, { query: { force: 'true' } })
    }
  }

  return {
    bring(imageId) {
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

/** The one that a server on this data directory has left when it was killed. */
export async function removeFiller(engine: DockerEngine, dataId: string): Promise<void> {
  const filler = await findFiller(engine)
  if (filler?.dataId !== dataId) return
  await engine.call('DELETE', `/containers/${filler.id}`, { query: { force: 'true' } })
}

/** A container that has the volume and never runs. */
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
      if (performance.now() - startedAt < FILLED_WITHIN_MS && (await findFiller(engine))?.dataId !== dataId) continue
      // Of a server on this data directory, which has died, or of one that takes too long.
      await engine.call('DELETE', `/containers/${FILLER}`, { query: { force: 'true' } })
    }
  }
}

/** The one that fills the volume now, and the data directory of its server. */
async function findFiller(engine: DockerEngine): Promise<{ id: string; dataId: unknown } | undefined> {
  try {
    const { Id, Config } = objectOf(await engine.call('GET', `/containers/${FILLER}/json`)) ?? {}
    return { id: String(Id), dataId: objectOf(objectOf(Config)?.Labels)?.[labels.data] }
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

async function isThere(engine: DockerEngine, filler: string, name: string): Promise<boolean> {
  try {
    await engine.call('HEAD', `/containers/${filler}/archive`, { query: { path: `${MOUNTED_AT}/${name}` } })
    return true
  } catch (error) {
    if (isMissing(error)) return false
    throw error
  }
}

async function put(engine: DockerEngine, filler: string, entries: readonly TarEntry[]): Promise<void> {
  await engine.call('PUT', `/containers/${filler}/archive`, { query: { path: MOUNTED_AT }, archive: tarOf(entries) })
}

/**
 * Gives the guest's files. The loader can be executed by all and read by root alone: so Linux keeps what the bridge's own
 * user starts by it from being read or traced from its first moment on.
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
