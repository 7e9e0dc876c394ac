import { dropDisk, makeDisk, type NewDisk } from './files/disk.ts'
import { prepareLayers } from './files/layers.ts'
import type { Descriptor } from './host/descriptor.ts'
import { type Ground, spareDirectory } from './host/layout.ts'
import { firstIdOf, type Slots } from './host/user-ids.ts'
import { openUserNamespace } from './jail/namespace.ts'
import { type Ahead, createAhead } from './prepared.ts'

/** What a new environment of root needs that no other can use. */
export interface Berth {
  slot: number
  userNamespace: Descriptor
  /** Undefined where its files go to a directory. */
  disk: NewDisk | undefined
}

export interface BerthSpec {
  base: string
  /** Of the base's directory: another one may come under its name. */
  baseInode: number
  host: boolean
  /** Undefined where no image is to be made. */
  imageMb: number | undefined
}

/** Berths are the same for the same spec, so the next one is made ahead: it takes longer than a jail takes to start. */
export interface Berths extends Ahead<BerthSpec, Berth> {
  /** Takes one back whose environment could not be made. */
  drop(berth: Berth): Promise<void>
}

export function createBerths(ground: Ground, slots: Slots): Berths {
  const make = async ({ base, host, imageMb }: BerthSpec): Promise<Berth> => {
    const slot = slots.take()
    const firstId = firstIdOf(slot)
    const fill = (box: string) => prepareLayers(box, base, { firstUid: firstId, firstGid: firstId }, host)
    const [userNamespace, disk] = await Promise.allSettled([
      openUserNamespace(firstId),
      imageMb === undefined
        ? undefined
        : makeDisk(spareDirectory(ground.dataDirectory), imageMb, fill, ground.diskSpace),
    ])
    if (userNamespace.status === 'fulfilled' && disk.status === 'fulfilled') {
      return { slot, userNamespace: userNamespace.value, disk: disk.value }
    }
    if (userNamespace.status === 'fulfilled') userNamespace.value.close()
    if (disk.status === 'fulfilled' && disk.value) await dropDisk(disk.value)
    slots.release(slot)
    throw userNamespace.status === 'rejected' ? userNamespace.reason : disk.status === 'rejected' && disk.reason
  }

  const drop = async ({ slot, userNamespace, disk }: Berth) => {
    userNamespace.close()
    if (disk) await dropDisk(disk)
    slots.release(slot)
  }

  return { ...createAhead(make, drop), drop }
}
