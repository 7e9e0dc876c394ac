import { dropDisk, makeDisk, type NewDisk } from './files/disk.ts'
import { prepareLayers } from './files/layers.ts'
import type { Descriptor } from './host/descriptor.ts'
import { type Host, preparedDisksDirectory } from './host/layout.ts'
import { getFirstId, type UserIdRange, type UserIdRanges } from './host/user-ids.ts'
import { openUserNamespace } from './jail/namespace.ts'
import { createPrepared, type Prepared } from './prepared.ts'

/** What a new environment of root needs that no other can use. */
export interface Reservation {
  userIdRange: UserIdRange
  userNamespace: Descriptor
  /** Undefined where its files go to a directory. */
  disk: NewDisk | undefined
}

export interface ReservationSpec {
  base: string
  /** Of the base's directory: another one may come under its name. */
  baseInode: number
  isHostBase: boolean
  /** Undefined where no image is to be made. */
  imageMb: number | undefined
}

/** Reservations are the same for the same spec, so the next one is made ahead: it takes longer than a jail takes to start. */
export interface Reservations extends Prepared<ReservationSpec, Reservation> {
  /** Takes one back whose environment could not be made. */
  drop(reservation: Reservation): Promise<void>
}

export function createReservations(host: Host, userIdRanges: UserIdRanges): Reservations {
  const make = async ({ base, isHostBase, imageMb }: ReservationSpec): Promise<Reservation> => {
    const userIdRange = userIdRanges.take()
    const firstId = getFirstId(userIdRange)
    const fill = (disk: string) =>
      prepareLayers({ disk, base, owner: { firstUid: firstId, firstGid: firstId }, isHostBase })
    const [userNamespace, disk] = await Promise.allSettled([
      openUserNamespace(firstId),
      imageMb === undefined
        ? undefined
        : makeDisk(preparedDisksDirectory(host.dataDirectory), imageMb, fill, host.diskSpace),
    ])
    if (userNamespace.status === 'fulfilled' && disk.status === 'fulfilled') {
      return { userIdRange, userNamespace: userNamespace.value, disk: disk.value }
    }
    if (userNamespace.status === 'fulfilled') userNamespace.value.close()
    if (disk.status === 'fulfilled' && disk.value) await dropDisk(disk.value)
    userIdRanges.release(userIdRange)
    throw userNamespace.status === 'rejected' ? userNamespace.reason : disk.status === 'rejected' && disk.reason
  }

  const drop = async ({ userIdRange, userNamespace, disk }: Reservation) => {
    userNamespace.close()
    if (disk) await dropDisk(disk)
    userIdRanges.release(userIdRange)
  }

  return { ...createPrepared(make, drop), drop }
}
