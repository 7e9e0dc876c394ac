import { messageOf } from '../../src/errors.ts'
import type { Outlets } from '../../src/guest/host/outlets.ts'
import type { EnvironmentSpec, Limits } from '../../src/plugin-api/index.ts'
import type { EngineLimits } from './available-limits.ts'
import { containerBody, containerName } from './container.ts'
import type { DockerEngine } from './engine.ts'
import type { GuestVolume } from './guest-volume.ts'
import type { Image, Images } from './image.ts'
import type { CreatedWith } from './labels.ts'
import type { JoinedGuest } from './redirect.ts'
import { removeContainer } from './remove-container.ts'
import { startContainer } from './start.ts'

const FILLED_WITHIN_MS = 3_600_000

/** What a data directory has on an engine: its id there, and its guest's volume. */
export interface Installation {
  dataId: string
  guest: GuestVolume
}

export interface ContainerDependencies extends Installation {
  engine: DockerEngine
  images: Images
  engineLimits: EngineLimits
}

/** An image that the engine has, and the content that its volumes begin with. */
export interface ContainerOrigin {
  /** The name of the image that the container reports. */
  name: string
  image: Image
  /** Undefined when the container may have the server's own. */
  runtime?: string
  volumes: readonly { path: string; archive: string }[]
}

export interface ContainerRequest {
  image: string | ContainerOrigin
  runtime: string | undefined
  limits: Limits
  outlets: Outlets
  onProgress?: EnvironmentSpec['onProgress']
}

export interface CreatedContainer {
  createdWith: CreatedWith
  imageId: string
  guest: JoinedGuest
}

/** Creates a container, pulls its image first if need be, and waits until its guest answers. A failure may leave the container. */
export async function createContainer(
  dependencies: ContainerDependencies,
  id: string,
  wanted: ContainerRequest,
): Promise<CreatedContainer> {
  const { engine, images, engineLimits, dataId, guest: volume } = dependencies
  const { limits, runtime, outlets, onProgress } = wanted
  const name = containerName(id)
  const origin =
    typeof wanted.image === 'string'
      ? { name: wanted.image, image: await images.get(wanted.image, onProgress), volumes: [] }
      : wanted.image
  const { image } = origin
  onProgress?.({ message: 'starting the container' })
  const createdWith: CreatedWith = {
    image: origin.name,
    limits,
    ...(runtime !== undefined && { runtime }),
    hasQuota: false,
    hasSeccomp: false,
    hasVolumes: image.volumes.length > 0,
    unlimited: await engineLimits.findUnlimited(),
  }
  const start = async () => {
    await volume.install(image.id)
    await engineLimits.create(createdWith, async ({ hasQuota, seccomp }) => {
      Object.assign(createdWith, { hasQuota, hasSeccomp: seccomp !== undefined } satisfies Partial<CreatedWith>)
      const emptyVolumes = origin.volumes.map(({ path }) => path)
      const body = containerBody({ id, dataId, image, createdWith, seccomp, emptyVolumes })
      await engine.call('POST', '/containers/create', { query: { name }, body })
    })
    for (const { path, archive } of origin.volumes) {
      const request = { query: { path }, archive: Bun.file(archive).stream(), timeoutMs: FILLED_WITHIN_MS }
      await engine.call('PUT', `/containers/${name}/archive`, request)
    }
    return await startContainer({ engine, container: name, imageId: image.id, dataId, runtime, outlets })
  }
  const guest = await start().catch(async error => {
    if (!isGuestMissing(error)) throw error
    // The volume was removed since it was filled, or a loss of power has left empty files in it.
    await removeContainer(engine, name)
    volume.forget()
    return await start()
  })
  return { createdWith, imageId: image.id, guest }
}

const isGuestMissing = (error: unknown): boolean => {
  const message = messageOf(error)
  if (/exec format error|error while loading shared libraries/i.test(message)) return true
  return /ld-linux/i.test(message) && /no such file|not found/i.test(message)
}
