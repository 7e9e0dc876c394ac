import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Descriptor } from '../../../src/descriptor.ts'
import { syncPath } from '../../../src/disk/lasting-files.ts'
import { type Host, preparedDisksDirectory } from '../host/layout.ts'
import { mountExt4 } from '../host/linux.ts'
import { attachLoop, listLoopDevices, readImageOf } from '../host/loop-device.ts'
import { boundDirtyPages, unboundDirtyPages } from './dirty-pages.ts'
import { type DiskTemplate, makeTemplate, writeCopy } from './disk-template.ts'
import { type LayersSpec, type Owner, ownLayers, planLayers, toLayers } from './layers.ts'

const RELEASED_WITHIN_MS = 5000
const RELEASED_POLL_MS = 2
/** The number of templates that are kept, each for a base and a size. Each takes some hundred KB of memory. */
const MAX_TEMPLATES = 4

/** A disk that no jail has used, mounted but nowhere in the tree. */
export interface NewDisk {
  image: string
  mount: Descriptor
}

export interface NewDiskSpec extends LayersSpec {
  sizeMb: number
  owner: Owner
}

/** The disks of root's environments: ext4 images, mounted through loop devices. */
export interface Disks {
  /**
   * Makes a disk of the size that is the limit: writing past it is "no space left on device", for the environment alone. The image
   * is sparse, and outlasts a loss of power once it is synced. A rejected call leaves nothing.
   */
  make(spec: NewDiskSpec): Promise<NewDisk>
  drop(disk: NewDisk): Promise<void>
  /** Mounts an image that no loop device has. */
  mount(image: string): Promise<Descriptor>
  /** Waits until no loop device has the image, which is as soon as its last mount is gone. False when one keeps it. */
  released(image: string): Promise<boolean>
  /** Tells that an image has moved to another path. */
  moved(image: string, to: string): void
}

export function createDisks(host: Host): Disks {
  const templates = new Map<string, Promise<DiskTemplate>>()
  /** The loop devices that this process has given to images. */
  const devices = new Map<string, string>()
  const directory = preparedDisksDirectory(host.dataDirectory)

  /** Listing what the base lacks takes a part of a millisecond, and so a template is never one of a base that has changed since. */
  const findTemplate = (sizeMb: number, plan: ReturnType<typeof planLayers>): Promise<DiskTemplate> => {
    const key = JSON.stringify([sizeMb, plan])
    const template = templates.get(key) ?? makeTemplate(directory, sizeMb, plan)
    templates.delete(key)
    templates.set(key, template)
    template.catch(() => templates.delete(key))
    const [oldest] = templates.keys()
    if (templates.size > MAX_TEMPLATES && oldest !== undefined) templates.delete(oldest)
    return template
  }

  const mount = async (image: string): Promise<Descriptor> => {
    const { name, descriptor } = attachLoop(image)
    try {
      devices.set(image, name)
      const mounted = mountExt4(`/dev/${name}`)
      await boundDirtyPages(`/proc/self/fd/${mounted.number}`, host.diskSpace)
      return mounted
    } finally {
      descriptor.close()
    }
  }

  const released = async (image: string): Promise<boolean> => {
    // For an image that was not mounted here, an earlier server's jail or an operator may have made a device.
    const device = devices.get(image) ?? listLoopDevices().find(name => readImageOf(name) === image)
    if (device === undefined) return true
    const deadline = performance.now() + RELEASED_WITHIN_MS
    while (readImageOf(device) === image) {
      if (performance.now() > deadline) return false
      await Bun.sleep(RELEASED_POLL_MS)
    }
    devices.delete(image)
    await unboundDirtyPages(device)
    return true
  }

  return {
    async make({ sizeMb, owner, ...spec }) {
      const plan = planLayers(spec)
      const image = join(directory, `${crypto.randomUUID()}.img`)
      let mounted: Descriptor | undefined
      try {
        await writeCopy(await findTemplate(sizeMb, plan), image)
        mounted = await mount(image)
        const disk = `/proc/self/fd/${mounted.number}`
        ownLayers(disk, plan, owner)
        // The journal writes earlier changes together with the last one.
        await syncPath(toLayers(disk).upper)
        return { image, mount: mounted }
      } catch (error) {
        mounted?.close()
        await rm(image, { force: true })
        throw error
      }
    },
    async drop({ image, mount: mounted }) {
      mounted.close()
      await rm(image, { force: true })
    },
    mount,
    released,
    moved(image, to) {
      const device = devices.get(image)
      devices.delete(image)
      if (device !== undefined) devices.set(to, device)
    },
  }
}
