import type { Duplex } from 'node:stream'
import { ApiError, isNoSpace, messageOf } from '../../src/errors.ts'
import { createGuestBackend, type GuestBackendOptions } from '../../src/guest/host/guest-backend.ts'
import type { Backend, DiskSpace } from '../../src/plugin-api/index.ts'
import { adoptEnvironments } from './adopt.ts'
import { createLimitsFinder } from './checks/available-limits.ts'
import { probeHost } from './checks/probes.ts'
import type { BackendContext } from './context.ts'
import { createEnvironment } from './create-environment.ts'
import { guardDisks, haltFailedDisks } from './disk-guard.ts'
import { type Host, realDataDirectory } from './host/layout.ts'
import { createUserIdRanges } from './host/user-ids.ts'
import { createInstalled } from './installed.ts'
import { createReservations } from './reservation.ts'

export interface NsjailOptions extends GuestBackendOptions {
  /** The nsjail executable; else the embedded one, else the one on the PATH. */
  nsjailPath?: string
  /** Absent: nothing of the disk is kept free. */
  diskSpace?: DiskSpace
}

/** Environments in long-lived nsjail jails on this machine. Nothing is written before the first call. */
export function createNsjailBackend(options: NsjailOptions): Backend {
  const { executable = process.execPath, nsjailPath, log } = options
  const { serveProxy = (_id: string, socket: Duplex) => void socket.destroy() } = options
  const host = toHost(options)
  const userIdRanges = createUserIdRanges()
  const context: BackendContext = {
    host,
    installed: createInstalled(host, { executable, ...(nsjailPath !== undefined && { nsjailPath }) }),
    userIdRanges,
    reservations: createReservations(host, userIdRanges),
    environments: new Map(),
    findLimits: createLimitsFinder(host),
    onProxy: id => socket => serveProxy(id, socket),
  }
  const { environments, reservations } = context

  const guests = createGuestBackend(options, {
    environments,
    async prepare() {
      const { sweeping } = await adoptEnvironments(context)
      const endGuard = guardDisks(host, environments)
      return { running: [...environments.values()], close: () => Promise.all([endGuard(), sweeping]) }
    },
    create: spec => createEnvironment(context, spec),
    toCreateError,
    onFailure: (id, error) => log(`looking after ${id}: ${messageOf(error)}`),
    lookAfter: () => haltFailedDisks(host, environments),
  })

  return {
    name: 'nsjail',
    isolation: 'namespaces',
    egress: 'proxy',
    check: () => probeHost(host, executable, nsjailPath),
    ...guests,
    async close() {
      await guests.close()
      await reservations.close()
    },
  }
}

function toHost({ dataDirectory, diskSpace, log }: NsjailOptions): Host {
  const uid = process.geteuid?.() ?? 0
  const gid = process.getegid?.() ?? 0
  return { dataDirectory: realDataDirectory(dataDirectory), isRoot: uid === 0, uid, gid, diskSpace, log }
}

function toCreateError(error: unknown): ApiError {
  if (error instanceof ApiError) return error
  const code = isNoSpace(error) ? 'disk_full' : 'sandbox_unavailable'
  return new ApiError(code, `The sandbox could not be made: ${messageOf(error)}`)
}
