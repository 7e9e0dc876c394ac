import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { ApiError } from '../../src/errors.ts'
import { objectOf, objectsOf } from '../../src/read/json.ts'
import type { EngineLimits } from './available-limits.ts'
import { containerBody, containerName } from './container.ts'
import type { Installation } from './create-container.ts'
import type { DockerEngine } from './engine.ts'
import { unavailable } from './failure.ts'
import { type ContainerContext, keepContainer } from './keep-container.ts'
import { directoryOf, hasCopy, readCopy, toVolumeFile } from './kept-copy.ts'
import { type CreatedWith, labels } from './labels.ts'
import { loadImage } from './load-image.ts'
import { removeContainer } from './remove-container.ts'

const LOADED_WITHIN_MS = 3_600_000

/** Makes the containers of restored sandboxes, each at its first use. */
export function createRestorer(
  context: ContainerContext,
  engineLimits: EngineLimits,
  prepare: () => Promise<Installation>,
): { restore(id: string): Promise<void>; settled(): Promise<unknown> } {
  const { dataDirectory, environments, log } = context
  const restoring = new Map<string, Promise<void>>()

  const restore = async (id: string) => {
    try {
      const installation = await prepare()
      await environments.get(id)?.release()
      const container = await restoreContainer({ ...context, ...installation, engineLimits }, id)
      keepContainer(context, installation, { id, ...container })
      log(`${id}: its container is restored`)
    } catch (error) {
      throw unavailable('The sandbox cannot be restored', error)
    }
  }

  return {
    async restore(id) {
      if (!hasCopy(dataDirectory, id)) return
      const done = restoring.get(id) ?? restore(id).finally(() => restoring.delete(id))
      restoring.set(id, done)
      await done
    },
    settled: () => Promise.allSettled(restoring.values()),
  }
}

interface RestoreContext extends ContainerContext, Installation {
  engineLimits: EngineLimits
}

/**
 * Makes the container of a sandbox from its copy, and removes the copy. The container does not run. What a killed call has left
 * is made again. Throws sandbox_unavailable when the engine has this container for another data directory.
 */
async function restoreContainer(
  context: RestoreContext,
  id: string,
): Promise<{ createdWith: CreatedWith; imageId: string }> {
  const { engine, engineLimits, dataId, guest, dataDirectory } = context
  const directory = directoryOf(dataDirectory, id)
  const copy = await readCopy(directory)
  await removeUnfinished(engine, id, dataId)
  const imageId = await loadImage(engine, join(directory, 'image.tar'))
  const createdWith: CreatedWith = {
    ...copy.createdWith,
    hasOwnImage: true,
    unlimited: await engineLimits.findUnlimited(),
  }
  const image = { id: imageId, env: copy.env, volumes: copy.volumes }
  await guest.install(imageId)
  await engineLimits.create(createdWith, async ({ hasQuota, seccomp }) => {
    Object.assign(createdWith, { hasQuota, hasSeccomp: seccomp !== undefined } satisfies Partial<CreatedWith>)
    const body = containerBody({ id, dataId, image, createdWith, seccomp, emptyVolumes: copy.volumes })
    await engine.call('POST', '/containers/create', { query: { name: containerName(id) }, body })
  })
  for (const [index, path] of copy.volumes.entries()) {
    const archive = Bun.file(join(directory, toVolumeFile(index))).stream()
    const request = { query: { path }, archive, timeoutMs: LOADED_WITHIN_MS }
    await engine.call('PUT', `/containers/${containerName(id)}/archive`, request)
  }
  await rm(directory, { recursive: true })
  return { createdWith, imageId }
}

async function removeUnfinished(engine: DockerEngine, id: string, dataId: string): Promise<void> {
  const filters = JSON.stringify({ name: [`^/${containerName(id)}$`] })
  const [found] = objectsOf(await engine.call('GET', '/containers/json', { query: { all: 'true', filters } }))
  if (!found) return
  if (objectOf(found.Labels)?.[labels.data] !== dataId) {
    throw new ApiError(
      'sandbox_unavailable',
      `The engine has a container ${containerName(id)} of another data directory. Remove it (docker rm), or use another engine.`,
    )
  }
  await removeContainer(engine, containerName(id))
}
