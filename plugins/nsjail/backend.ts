import { existsSync, realpathSync } from 'node:fs'
import { chmod, mkdir, readdir, rename, stat } from 'node:fs/promises'
import type { Duplex } from 'node:stream'
import { once } from '../../src/async/once.ts'
import { syncPath } from '../../src/disk/lasting-files.ts'
import { runCommand } from '../../src/environment/run-command.ts'
import { ApiError, isNoSpace, messageOf } from '../../src/errors.ts'
import { startHousekeeping } from '../../src/guest/host/housekeeping.ts'
import { type KeptEnvironment, keepEnvironment } from '../../src/guest/host/kept-environment.ts'
import type { Backend, DiskSpace, Environment, EnvironmentSpec } from '../../src/plugin-api/index.ts'
import { type AvailableLimits, findAvailableLimits } from './checks/available-limits.ts'
import { probeHost } from './checks/probes.ts'
import { guardDisks, haltFailedDisks } from './disk-guard.ts'
import { HOST_BASE, resolveBase } from './files/resolve-base.ts'
import { closeStaging } from './files/staging.ts'
import { type EnvironmentPaths, getEnvironmentPaths, type Host, isSafeId, sandboxesDirectory } from './host/layout.ts'
import { draftRecord, type EnvironmentRecord, readRecord } from './host/record.ts'
import { createUserIdRanges } from './host/user-ids.ts'
import { createInstalled } from './installed.ts'
import { findJail } from './jail/jail.ts'
import { createJailLifecycle } from './lifecycle.ts'
import { removeEnvironment } from './remove.ts'
import { createReservations, type Reservation, type ReservationSpec } from './reservation.ts'
import { joinJail, type StartedJail, startJail } from './start.ts'
import { emptyTrash, eraseOldGuests, sweepLeftovers } from './sweep.ts'

export interface NsjailOptions {
  dataDirectory: string
  /** The nsjail executable; else the embedded one, else the one on the PATH. */
  nsjailPath?: string
  /** Environments that are not used for this long are paused. Default one hour; 0 never pauses. */
  idleMs?: number
  /** The executable that is the guest inside; default this process's own. */
  executable?: string
  /** Takes a connection that a process inside made to the proxy; without it they are closed. */
  serveProxy?(environmentId: string, socket: Duplex): void
  /** Absent: nothing of the disk is kept free. */
  diskSpace?: DiskSpace
  log(line: string): void
}

const DEFAULT_IDLE_MS = 3_600_000
const SYNC_WITHIN_MS = 60_000

/** Environments in long-lived nsjail jails on this machine. Nothing is touched before the first call. */
export function createNsjailBackend(options: NsjailOptions): Backend {
  const { idleMs = DEFAULT_IDLE_MS, executable = process.execPath, nsjailPath, log } = options
  const host = toHost(options)
  const installed = createInstalled(host, { executable, ...(nsjailPath !== undefined && { nsjailPath }) })
  const userIdRanges = createUserIdRanges()
  const reservations = createReservations(host, userIdRanges)
  const environments = new Map<string, KeptEnvironment>()
  const onProxy = (id: string) => (socket: Duplex) =>
    options.serveProxy ? options.serveProxy(id, socket) : void socket.destroy()
  const creating = new Map<string, Promise<KeptEnvironment>>()

  const keep = (
    paths: EnvironmentPaths,
    record: EnvironmentRecord,
    { controllers }: AvailableLimits,
    started?: StartedJail,
  ) => {
    const home = createJailLifecycle({
      host,
      paths,
      record,
      limited: controllers,
      join: nsjail => joinJail({ host, installed, paths, record, onProxy: onProxy(paths.id) }, nsjail),
      start: () => startJail({ host, installed, paths, record, onProxy: onProxy(paths.id) }),
      onRemoved() {
        environments.delete(paths.id)
        if (record.userIdRange !== undefined) userIdRanges.release(record.userIdRange)
      },
    })
    const kept = keepEnvironment(home, started?.connection)
    // Without an image its files are the host's: to sync those would be to wait for all that anyone writes there.
    const environment = record.hasImage ? Object.assign(kept, { sync: () => syncInside(kept) }) : kept
    environments.set(paths.id, environment)
    return environment
  }

  /** Keeps what was created wholly; removes what a server that died had begun. */
  const find = async (id: string, capabilities: AvailableLimits) => {
    const paths = getEnvironmentPaths(host.dataDirectory, id)
    try {
      const record = await readRecord(paths)
      if (!record) return await removeEnvironment(host, paths)
      if (host.isRoot) closeStaging(paths)
      if (record.userIdRange !== undefined && !userIdRanges.claim(record.userIdRange))
        log(`${id} has the user ids of another sandbox`)
      keep(paths, record, capabilities)
    } catch (error) {
      log(`${id}: ${messageOf(error)}`)
    }
  }

  /** What takes its time and nobody waits for. */
  const sweep = async () => {
    await emptyTrash(host)
    const jails = await Promise.all(
      [...environments.keys()].map(id => findJail(getEnvironmentPaths(host.dataDirectory, id))),
    )
    if (jails.every(jail => jail === undefined)) await eraseOldGuests(await installed.guest())
  }

  const isRoomy = () => (host.diskSpace?.state.level ?? 'enough') === 'enough'

  /** What is found out on a full disk is found out again. */
  let found: { capabilities: Promise<AvailableLimits>; wasRoomy: boolean } | undefined
  const able = () => {
    if (!found || (!found.wasRoomy && isRoomy())) {
      found = { capabilities: findAvailableLimits(host), wasRoomy: isRoomy() }
    }
    return found.capabilities
  }

  const prepare = once(async () => {
    const sandboxes = sandboxesDirectory(host.dataDirectory)
    await mkdir(sandboxes, { recursive: true, mode: 0o700 })
    // Loop devices are told apart by the real path of their image.
    host.dataDirectory = realpathSync(host.dataDirectory)
    await sweepLeftovers(host)
    const capabilities = await able()
    await Promise.all((await readdir(sandboxes)).filter(isSafeId).map(id => find(id, capabilities)))
    const sweeping = sweep().catch(error => log(`sweeping the data directory: ${messageOf(error)}`))
    const endHousekeeping = startHousekeeping({
      environments: () => environments.values(),
      idleMs,
      onFailure: (id, error) => log(`looking after ${id}: ${messageOf(error)}`),
      also: () => haltFailedDisks(host, environments),
    })
    const endGuard = guardDisks(host, environments)
    return { endGuard, endHousekeeping, sweeping, rejoined: rejoin() }
  })
  let prepared: ReturnType<typeof prepare> | undefined
  let isClosing = false
  const ready = () => {
    prepared = prepare()
    return prepared
  }

  /** One after the other, beside the first uses; a jail that does not answer is left to its next use. */
  const rejoin = async () => {
    for (const environment of [...environments.values()]) {
      if (!isClosing) await environment.rejoin().catch(error => log(`${environment.id}: ${messageOf(error)}`))
    }
  }

  const make = async (spec: EnvironmentSpec): Promise<KeptEnvironment> => {
    await ready()
    const paths = getEnvironmentPaths(host.dataDirectory, spec.id)
    await host.diskSpace?.assertEnough()
    const capabilities = await able()
    if (environments.has(spec.id) || existsSync(paths.directory)) {
      throw new ApiError('conflict', 'The sandbox exists already.')
    }
    const { base: wanted = HOST_BASE } = spec
    const isHostBase = wanted === HOST_BASE
    const base = isHostBase ? await installed.hostBase() : await resolveBase(host, wanted)
    const imageMb = capabilities.noImages === undefined ? spec.limits.diskMb : undefined
    const reservationSpec: ReservationSpec = { base, baseInode: (await stat(base)).ino, isHostBase, imageMb }
    const reservation = host.isRoot ? await reservations.take(reservationSpec) : undefined
    const hasImage = reservation?.disk !== undefined
    const record: EnvironmentRecord = {
      ...(reservation && { userIdRange: reservation.userIdRange }),
      base,
      isHostBase,
      hasImage,
      limits: { ...spec.limits },
    }
    try {
      await makeFiles(paths, reservation)
      const [commit, started, synced] = await Promise.allSettled([
        draftRecord(paths, record),
        startJail({ host, installed, paths, record, reservation, onProxy: onProxy(paths.id) }),
        hasImage ? syncPath(paths.image) : undefined,
      ])
      if (started.status === 'rejected') throw started.reason
      if (commit.status === 'rejected') throw commit.reason
      if (synced.status === 'rejected') throw synced.reason
      commit.value()
      // Its names: a create that was answered is there after a loss of power.
      await Promise.all([syncPath(paths.directory), syncPath(sandboxesDirectory(host.dataDirectory))])
      if (!existsSync(base)) throw new ApiError('invalid_request', `The base ${wanted} was removed meanwhile.`)
      return keep(paths, record, capabilities, started.value)
    } catch (error) {
      reservation?.disk?.mount.close()
      await removeEnvironment(host, paths).then(
        () => reservation && reservations.drop(reservation),
        // Its user ids stay taken, because something may still run under them.
        problem => log(`${spec.id} could not be removed: ${messageOf(problem)}`),
      )
      throw error
    } finally {
      if (host.isRoot && isRoomy()) reservations.prepare(reservationSpec)
    }
  }

  return {
    name: 'nsjail',
    isolation: 'namespaces',
    egress: 'proxy',
    check: () => probeHost(host, executable, nsjailPath),

    async create(spec) {
      if (!isSafeId(spec.id)) throw new Error('the environment id is not safe as a file name')
      if (creating.has(spec.id)) throw new ApiError('conflict', 'The sandbox exists already.')
      const made = make(spec).catch(error => {
        if (error instanceof ApiError) throw error
        const code = isNoSpace(error) ? 'disk_full' : 'sandbox_unavailable'
        throw new ApiError(code, `The sandbox could not be made: ${messageOf(error)}`)
      })
      creating.set(spec.id, made)
      return made.finally(() => creating.delete(spec.id))
    },

    async open(id) {
      await ready()
      const environment = environments.get(id)
      return environment?.isDestroyed ? undefined : environment
    },

    troubleOf: id => environments.get(id)?.trouble,

    async list() {
      await ready()
      return [...environments.values()].filter(environment => !environment.isDestroyed).map(({ id }) => id)
    },

    async close() {
      isClosing = true
      await Promise.allSettled(creating.values())
      const parts = await prepared?.catch(() => undefined)
      await Promise.all([parts?.endHousekeeping(), parts?.endGuard(), parts?.sweeping, parts?.rejoined])
      await Promise.all([...environments.values()].map(environment => environment.release()))
      await reservations.close()
    },
  }
}

/** Makes an environment's directory, with its disk. */
async function makeFiles(paths: EnvironmentPaths, reservation: Reservation | undefined): Promise<void> {
  await mkdir(paths.directory, { mode: 0o700 })
  if (reservation?.disk) return rename(reservation.disk.image, paths.image)
  await mkdir(paths.diskDirectory, { mode: 0o711 })
  await chmod(paths.diskDirectory, 0o711)
}

/** Its disk is mounted for itself alone: nobody else's files are waited for. */
async function syncInside(environment: Environment): Promise<void> {
  await runCommand(environment, { command: ['sync', '-f', '/'], timeoutMs: SYNC_WITHIN_MS })
}

function toHost({ dataDirectory, diskSpace, log }: NsjailOptions): Host {
  const uid = process.geteuid?.() ?? 0
  return { dataDirectory, isRoot: uid === 0, uid, gid: process.getegid?.() ?? 0, diskSpace, log }
}
