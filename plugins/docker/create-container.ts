import type { Duplex } from 'node:stream'
import { messageOf } from '../../src/errors.ts'
import type { GuestConnection } from '../../src/guest/host/connect.ts'
import type { Limits } from '../../src/plugin-api/index.ts'
import type { Capabilities } from './available-limits.ts'
import { containerBody, guestInside, nameOf } from './container.ts'
import type { DockerEngine } from './engine.ts'
import type { GuestVolume } from './guest-volume.ts'
import type { Images } from './image.ts'
import type { Made } from './labels.ts'
import { removeContainer, startContainer } from './start.ts'

/** Whose containers, and what guest is in them. */
export interface House {
  dataId: string
  guest: GuestVolume
}

export interface Supplies extends House {
  engine: DockerEngine
  images: Images
  capabilities: Capabilities
}

export interface Wanted {
  image: string
  limits: Limits
  onProxy(socket: Duplex): void
}

export interface MadeContainer {
  made: Made
  imageId: string
  connection: GuestConnection
}

/** Makes a container, brings its image first if need be, and waits until its guest answers. A failure may leave it. */
export async function makeContainer(supplies: Supplies, id: string, wanted: Wanted): Promise<MadeContainer> {
  const { engine, images, capabilities, dataId, guest } = supplies
  const { limits, onProxy } = wanted
  const name = nameOf(id)
  const image = await images.get(wanted.image)
  const made: Made = {
    image: wanted.image,
    limits,
    hasQuota: false,
    hasSeccomp: false,
    hasVolumes: image.volumes.length > 0,
    unlimited: await capabilities.findUnlimited(),
  }
  const begin = async () => {
    await guest.bring(image.id)
    await capabilities.create(limits.diskMb !== undefined, async ({ hasQuota, seccomp }) => {
      Object.assign(made, { hasQuota, hasSeccomp: seccomp !== undefined } satisfies Partial<Made>)
      const body = containerBody({ id, dataId, image, made, seccomp })
      await engine.call('POST', '/containers/create', { query: { name }, body })
    })
    return await startContainer(engine, name, guestInside(dataId), onProxy)
  }
  const connection = await begin().catch(async error => {
    if (!isGuestMissing(error)) throw error
    // Somebody has removed the volume since it was filled, or a loss of power has left empty files in it.
    await removeContainer(engine, name)
    guest.forget()
    return await begin()
  })
  return { made, imageId: image.id, connection }
}

const isGuestMissing = (error: unknown): boolean => {
  const words = messageOf(error)
  if (/exec format error|error while loading shared libraries/i.test(words)) return true
  return /ld-linux/i.test(words) && /no such file|not found/i.test(words)
}
