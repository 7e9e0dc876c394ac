import { ApiError, isNoSpace, messageOf } from '../../src/errors.ts'
import { createGuestBackend, type GuestBackendOptions } from '../../src/guest/host/guest-backend.ts'
import { outletsOf } from '../../src/guest/host/outlets.ts'
import type { Backend, DiskSpace } from '../../src/plugin-api/index.ts'
import { adoptEnvironments } from './adopt.ts'
import { createLimitsFinder } from './checks/available-limits.ts'
import { probeHost } from './checks/probes.ts'
import { claimSpare } from './claim-spare.ts'
import type { BackendContext } from './context.ts'
import { createEnvironment } from './create-environment.ts'
import { guardDisks, haltFailedDisks } from './disk-guard.ts'
import { listBaseNames } from './files/base-store.ts'
import { createDisks } from './files/disk.ts'
import { type Host, realDataDirectory } from './host/layout.ts'
import { createUserIdRanges } from './host/user-ids.ts'
import { createInstalled } from './installed.ts'
import { createReservations } from './reservation.ts'
import { createSnapshotHolds } from './snapshots/snapshot-holds.ts'
import { createSnapshots } from './snapshots/snapshots.ts'
import { createStartQueue } from './start-queue.ts'

export interface NsjailOptions extends GuestBackendOptions {
  /** The nsjail executable; else the embedded one, else the one on the PATH. */
  nsjailPath?: string
  /** How many snapshots may lie below an environment's own files, before they are copied. Default 24. */
  maxLayers?: number
  /** Absent: nothing of the disk is kept free. */
  diskSpace?: DiskSpace
}

/** Environments in long-lived nsjail jails on this machine. Nothing is written before the first call. */
export function createNsjailBackend(options: NsjailOptions): Backend {
  const { executable = process.execPath, nsjailPath, log } = options
  const host = toHost(options)
  const userIdRanges = createUserIdRanges()
  const disks = createDisks(host)
  const context: BackendContext = {
    host,
    installed: createInstalled(host, { executable, ...(nsjailPath !== undefined && { nsjailPath }) }),
    userIdRanges,
    disks,
    reservations: createReservations(disks, userIdRanges),
    queue: createStartQueue(),
    removals: new Map(),
    snapshotHolds: createSnapshotHolds(),
    environments: new Map(),
    spareBases: new WeakMap(),
    findLimits: createLimitsFinder(host),
    outletsOf: id => outletsOf(options, id),
  }
  const { environments, removals, reservations } = context

  const guests = createGuestBackend(options, {
    environments,
    async prepare() {
      const { sweeping } = await adoptEnvironments(context)
      const endGuard = guardDisks(host, environments)
      return { running: [...environments.values()], close: () => Promise.all([endGuard(), sweeping]) }
    },
    create: spec => context.queue(() => createEnvironment(context, spec)),
    claim: (environment, spec) => claimSpare(context, environment, spec),
    toCreateError,
    onFailure: (id, error) => log(`looking after ${id}: ${messageOf(error)}`),
    lookAfter: () => haltFailedDisks(host, environments),
  })

  /** Checks that are running, which use jails. */
  const checking = new Set<Promise<unknown>>()

  return {
    name: 'nsjail',
    isolation: 'namespaces',
    egress: 'proxy',
    async check() {
      const checks = probeHost(host, executable, nsjailPath)
      checking.add(checks)
      try {
        return await checks
      } finally {
        checking.delete(checks)
      }
    },
    ...guests,
    snapshots: createSnapshots(context, guests.list),
    listBases: () => listBaseNames(host.dataDirectory),
    async close() {
      await guests.close()
      await Promise.all([reservations.close(), ...removals.values(), Promise.allSettled(checking)])
    },
  }
}

const MAX_LAYERS = 24

function toHost({ dataDirectory, diskSpace, maxLayers = MAX_LAYERS, log }: NsjailOptions): Host {
  const uid = process.geteuid?.() ?? 0
  const gid = process.getegid?.() ?? 0
  return { dataDirectory: realDataDirectory(dataDirectory), isRoot: uid === 0, uid, gid, diskSpace, maxLayers, log }
}

function toCreateError(error: unknown): ApiError {
  if (error instanceof ApiError) return error
  const code = isNoSpace(error) ? 'disk_full' : 'sandbox_unavailable'
  return new ApiError(code, `The sandbox could not be made: ${messageOf(error)}`)
}
