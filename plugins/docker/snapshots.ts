import { existsSync, readdirSync } from 'node:fs'
import { mkdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createKeyedLock } from '../../src/async/lock.ts'
import { syncTree } from '../../src/disk/lasting-files.ts'
import { ApiError } from '../../src/errors.ts'
import { TOKEN_VARIABLE } from '../../src/guest/wire/token-variable.ts'
import type { Snapshots, TakenSnapshot } from '../../src/plugin-api/index.ts'
import { objectsOf } from '../../src/read/json.ts'
import { containerName, ENVIRONMENT_VARIABLE } from './container.ts'
import { describeContainer, freezeContainer } from './copy-container.ts'
import { whileMarked } from './copy-mark.ts'
import type { ContainerOrigin, Installation } from './create-container.ts'
import type { DockerEngine } from './engine.ts'
import { isConflict, isMissing, unavailable } from './failure.ts'
import { findImage } from './image.ts'
import { type KeptCopy, readCopy, toVolumeFile } from './kept-copy.ts'
import { labels } from './labels.ts'
import { loadImage } from './load-image.ts'
import { isolationOf } from './runtime.ts'
import { IMAGE_FILE, imageOf, snapshotDirectory, snapshotOf, snapshotsDirectory, tagOf } from './snapshot-names.ts'

const DRAFT_PREFIX = '.draft-'
const loadInTurn = createKeyedLock()
/** The label that names the data directory to which a snapshot's image belongs. */
const LABEL = 'threadbox.snapshot'

export interface DockerSnapshots extends Snapshots {
  /**
   * Removes the images of snapshots that nobody makes any more and that were never finished. An engine goes on with an image when the
   * server that asked for it was killed, and so has it only later.
   */
  removeStrays(): Promise<void>
}

/**
 * Snapshots as images of an engine, which containers share; what an image does not have, the volumes that it declares, is packed in
 * the data directory. `prepare` resolves once the engine can be used.
 */
export const createDockerSnapshots = (
  engine: DockerEngine,
  dataDirectory: string,
  prepare: () => Promise<Pick<Installation, 'dataId'>>,
  making = new Set<string>(),
): DockerSnapshots => ({
  async take(environmentId, snapshotId, signal) {
    const { dataId } = await prepare()
    making.add(snapshotId)
    const draft = join(snapshotsDirectory(dataDirectory), `${DRAFT_PREFIX}${process.pid}-${crypto.randomUUID()}`)
    const container = containerName(environmentId)
    try {
      signal?.throwIfAborted()
      const described = await describeContainer(engine, container)
      await mkdir(draft, { recursive: true, mode: 0o700 })
      const { frozenMs } = await whileMarked(dataDirectory, environmentId, () =>
        freezeContainer(engine, container, described, {
          to: draft,
          query: tagOf(dataId, snapshotId),
          config: toConfig(described, dataId),
        }),
      )
      signal?.throwIfAborted()
      const { createdWith, env, volumes, writtenBytes: bytes } = described
      await writeFile(join(draft, 'container.json'), JSON.stringify({ createdWith, env, volumes } satisfies KeptCopy))
      await syncTree(draft)
      await rename(draft, snapshotDirectory(dataDirectory, snapshotId))
      return { frozenMs, method: 'copy', forkMethod: 'layers', bytes } satisfies TakenSnapshot
    } catch (error) {
      await rm(draft, { recursive: true, force: true })
      await removeImage(engine, imageOf(dataId, snapshotId))
      throw signal?.aborted ? error : unavailable('The snapshot could not be taken', error)
    } finally {
      making.delete(snapshotId)
    }
  },
  async isolationOf(snapshotId) {
    const directory = snapshotDirectory(dataDirectory, snapshotId)
    if (!existsSync(directory)) throw noFiles()
    return isolationOf((await readCopy(directory)).createdWith.runtime)
  },
  async remove(snapshotId) {
    const { dataId } = await prepare()
    const directory = snapshotDirectory(dataDirectory, snapshotId)
    await removeDrafts(dataDirectory)
    return await loadInTurn(directory, async () => {
      // The engine keeps an image that containers or other snapshots are made of.
      if (!(await removeImage(engine, imageOf(dataId, snapshotId)))) return false
      await rm(directory, { recursive: true, force: true })
      return true
    })
  },
  async removeStrays() {
    const { dataId } = await prepare()
    const query = { filters: JSON.stringify({ label: [`${LABEL}=${dataId}`] }) }
    for (const { RepoTags } of objectsOf(await engine.call('GET', '/images/json', { query }))) {
      for (const image of Array.isArray(RepoTags) ? RepoTags.map(String) : []) {
        const id = snapshotOf(dataId, image)
        if (id === undefined || making.has(id) || existsSync(snapshotDirectory(dataDirectory, id))) continue
        await removeImage(engine, image)
      }
    }
  },
})

const noFiles = () => new ApiError('not_found', 'The snapshot has no files any more.')

/** Finds what a container made from a snapshot begins with. Gives the engine what a restore has brought. Throws not_found. */
export async function findDockerSnapshot(
  engine: DockerEngine,
  dataDirectory: string,
  { dataId, snapshotId }: { dataId: string; snapshotId: string },
): Promise<ContainerOrigin> {
  const directory = snapshotDirectory(dataDirectory, snapshotId)
  await loadInTurn(directory, async () => {
    const archive = join(directory, IMAGE_FILE)
    if (!existsSync(archive)) return
    const id = await loadImage(engine, archive)
    await engine.call('POST', `/images/${id}/tag`, { query: tagOf(dataId, snapshotId) })
    await rm(archive)
  })
  const image = existsSync(directory) ? await findImage(engine, imageOf(dataId, snapshotId)) : undefined
  if (!image) throw noFiles()
  const { createdWith, env, volumes } = await readCopy(directory)
  const archives = volumes.map((path, index) => ({ path, archive: join(directory, toVolumeFile(index)) }))
  const { image: name, runtime } = createdWith
  const chosen = runtime === undefined ? {} : { runtime }
  return { name, image: { id: image.id, env, volumes }, ...chosen, volumes: archives }
}

/** The guest's token belongs to one container only, and the image is not a container of this data directory. */
const toConfig = ({ env }: KeptCopy, dataId: string) => ({
  Env: [`${TOKEN_VARIABLE}=`, `${ENVIRONMENT_VARIABLE}=${JSON.stringify(env)}`],
  Labels: { [LABEL]: dataId, [labels.environment]: '', [labels.createdWith]: '', [labels.data]: '' },
})

/** Returns false while containers or snapshots were made from the image. */
async function removeImage(engine: DockerEngine, image: string): Promise<boolean> {
  try {
    await engine.call('DELETE', `/images/${image}`)
    return true
  } catch (error) {
    if (isMissing(error)) return true
    if (isConflict(error)) return false
    throw error
  }
}

/** Removes what servers that were killed have left: one server uses a data directory at a time. */
async function removeDrafts(dataDirectory: string): Promise<void> {
  const parent = snapshotsDirectory(dataDirectory)
  if (!existsSync(parent)) return
  for (const name of readdirSync(parent).filter(each => each.startsWith(DRAFT_PREFIX))) {
    const [, pid] = /^\.draft-(\d+)-/.exec(name) ?? []
    if (pid !== undefined && Number(pid) !== process.pid) await rm(join(parent, name), { recursive: true, force: true })
  }
}
