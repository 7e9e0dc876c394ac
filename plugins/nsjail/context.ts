import type { Duplex } from 'node:stream'
import type { KeptEnvironment } from '../../src/guest/host/kept-environment.ts'
import type { AvailableLimits } from './checks/available-limits.ts'
import type { Host } from './host/layout.ts'
import type { UserIdRanges } from './host/user-ids.ts'
import type { Installed } from './installed.ts'
import type { Reservations } from './reservation.ts'

/** The values that adopting, creating and keeping an environment share. */
export interface BackendContext {
  host: Host
  installed: Installed
  userIdRanges: UserIdRanges
  reservations: Reservations
  environments: Map<string, KeptEnvironment>
  findLimits(): Promise<AvailableLimits>
  /** Takes what processes inside connect to the proxy. */
  onProxy(environmentId: string): (socket: Duplex) => void
}
