import type { Disks, NewDisk } from './files/disk.ts'
import { getFirstId, type UserIdRange, type UserIdRanges } from './host/user-ids.ts'
import { createPrepared, type Prepared } from './prepared.ts'

/** Everything that a new environment of root must not share: its user ids, its disk. */
export interface Reservation {
  userIdRange: UserIdRange
  /** Undefined when its files go to a directory. */
  disk: NewDisk | undefined
}

export interface ReservationSpec {
  base: string
  /** Inode of the base's directory: another directory may later have its path. */
  baseInode: number
  isHostBase: boolean
  hasLayers: boolean
  /** Undefined when the disk is no image. */
  imageMb: number | undefined
}

/** A reservation depends only on its spec, so the next one is prepared in the background. */
export interface Reservations extends Prepared<ReservationSpec, Reservation> {
  /** Releases the reservation of an environment that could not be made. */
  drop(reservation: Reservation): Promise<void>
}

export function createReservations(disks: Disks, userIdRanges: UserIdRanges): Reservations {
  const make = async ({ imageMb, baseInode: _, ...layers }: ReservationSpec): Promise<Reservation> => {
    const userIdRange = userIdRanges.take()
    try {
      const firstId = getFirstId(userIdRange)
      const owner = { firstUid: firstId, firstGid: firstId }
      const disk = imageMb === undefined ? undefined : await disks.make({ sizeMb: imageMb, ...layers, owner })
      return { userIdRange, disk }
    } catch (error) {
      userIdRanges.release(userIdRange)
      throw error
    }
  }

  const drop = async ({ userIdRange, disk }: Reservation) => {
    if (disk) await disks.drop(disk)
    userIdRanges.release(userIdRange)
  }

  return { ...createPrepared(make, drop), drop }
}
