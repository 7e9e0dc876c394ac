import type { Duplex } from 'node:stream'
import { messageOf } from '../../src/errors.ts'
import type { GuestConnection } from '../../src/guest/host/connect.ts'
import type { Limits } from '../../src/plugin-api/index.ts'
import type { EngineLimits } from './available-limits.ts'
import { containerBody, containerName, guestDirectoryInside } from './container.ts'
import type { DockerEngine } from './engine.ts'
import type { GuestVolume } from './guest-volume.ts'
import type { Images } from './image.ts'
import type { CreatedWith } from './labels.ts'
import { removeContainer, startContainer } from './start.ts'

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

export interface ContainerRequest {
  image: string
  limits: Limits
  onProxy(socket: Duplex): void
}

export interface CreatedContainer {
  createdWith: CreatedWith
  imageId: string
  connection: GuestConnection
}

/** Creates a container, pulls its image first if need be, and waits until its guest answers. A failure may leave the container. */
export async function createContainer(
  dependencies: ContainerDependencies,
  id: string,
  wanted: ContainerRequest,
): Promise<CreatedContainer> {
  const { engine, images, engineLimits, dataId, guest } = dependencies
  const { limits, onProxy } = wanted
  const name = containerName(id)
  const image = await images.get(wanted.image)
  const createdWith: CreatedWith = {
    image: wanted.image,
    limits,
    hasQuota: false,
    hasSeccomp: false,
    hasVolumes: image.volumes.length > 0,
    unlimited: await engineLimits.findUnlimited(),
  }
  const start = async () => {
    await guest.install(image.id)
    await engineLimits.create(limits.diskMb !== undefined, async ({ hasQuota, seccomp }) => {
      Object.assign(createdWith, { hasQuota, hasSeccomp: seccomp !== undefined } satisfies Partial<CreatedWith>)
      const body = containerBody({ id, dataId, image, createdWith, seccomp })
      await engine.call('POST', '/containers/create', { query: { name }, body })
    })
    return await startContainer({ engine, container: name, guestDirectory: guestDirectoryInside(dataId), onProxy })
  }
  const connection = await start().catch(async error => {
    if (!isGuestMissing(error)) throw error
    // The volume was removed since it was filled, or a loss of power has left empty files in it.
    await removeContainer(engine, name)
    guest.forget()
    return await start()
  })
  return { createdWith, imageId: image.id, connection }
}

const isGuestMissing = (error: unknown): boolean => {
  const message = messageOf(error)
  if (/exec format error|error while loading shared libraries/i.test(message)) return true
  return /ld-linux/i.test(message) && /no such file|not found/i.test(message)
}
