import type { KeptEnvironment } from '../../src/guest/host/kept-environment.ts'
import type { Outlets } from '../../src/guest/host/outlets.ts'
import type { AvailableLimits } from './checks/available-limits.ts'
import type { Disks } from './files/disk.ts'
import type { FoundBase } from './find-base.ts'
import type { Host } from './host/layout.ts'
import type { UserIdRanges } from './host/user-ids.ts'
import type { Installed } from './installed.ts'
import type { Reservations } from './reservation.ts'
import type { SnapshotHolds } from './snapshots/snapshot-holds.ts'
import type { StartQueue } from './start-queue.ts'

/** The values that adopting, creating and keeping an environment share. */
export interface BackendContext {
  host: Host
  installed: Installed
  disks: Disks
  userIdRanges: UserIdRanges
  reservations: Reservations
  queue: StartQueue
  /** Removals that have not ended, by environment: an id is not used again before its removal has ended. They never reject. */
  removals: Map<string, Promise<void>>
  environments: Map<string, KeptEnvironment>
  snapshotHolds: SnapshotHolds
  /** The bases that spares were made from. */
  spareBases: WeakMap<KeptEnvironment, FoundBase>
  findLimits(): Promise<AvailableLimits>
  outletsOf(environmentId: string): Outlets
}
