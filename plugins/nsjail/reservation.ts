import type { Descriptor } from '../../src/descriptor.ts'
import { dropDisk, makeDisk, type NewDisk } from './files/disk.ts'
import { prepareLayers } from './files/layers.ts'
import { type Host, preparedDisksDirectory } from './host/layout.ts'
import { getFirstId, type UserIdRange, type UserIdRanges } from './host/user-ids.ts'
import { openUserNamespace } from './jail/namespace.ts'
import { createPrepared, type Prepared } from './prepared.ts'

/** Everything that a new environment of root must not share: its user ids, their namespace, its disk. */
export interface Reservation {
  userIdRange: UserIdRange
  userNamespace: Descriptor
  /** Undefined when its files go to a directory. */
  disk: NewDisk | undefined
}

export interface ReservationSpec {
  base: string
  /** Inode of the base's directory: another directory may later have its path. */
  baseInode: number
  isHostBase: boolean
  /** Undefined when the disk is no image. */
  imageMb: number | undefined
}

/** A reservation depends only on its spec, so the next one is prepared in the background: making it is slower than starting a jail. */
export interface Reservations extends Prepared<ReservationSpec, Reservation> {
  /** Releases the reservation of an environment that could not be made. */
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
