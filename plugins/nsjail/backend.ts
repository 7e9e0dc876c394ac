import { existsSync, realpathSync } from 'node:fs'
import { chmod, mkdir, readdir, rename, stat } from 'node:fs/promises'
import type { Duplex } from 'node:stream'
import { once } from '../../src/async/once.ts'
import { syncPath } from '../../src/disk/lasting-files.ts'
import { runShell } from '../../src/environment/run-command.ts'
import { ApiError, isNoSpace, messageOf } from '../../src/errors.ts'
import { startHousekeeping } from '../../src/guest/host/housekeeping.ts'
import { type KeptEnvironment, keepEnvironment } from '../../src/guest/host/kept-environment.ts'
import type { Backend, DiskSpace, Environment, EnvironmentSpec } from '../../src/plugin-api/index.ts'
import { type Capabilities, findCapabilities } from './checks/available-limits.ts'
import { probeHost } from './checks/probes.ts'
import { guardDisks, haltFailedDisks } from './disk-guard.ts'
import { HOST, resolveBase } from './files/resolve-base.ts'
import { closeStage } from './files/staging.ts'
import { type Ground, isSafeId, type Place, placeOf, sandboxesDirectory } from './host/layout.ts'
import { draftMeta, type Meta, readMeta } from './host/record.ts'
import { createSlots } from './host/user-ids.ts'
import { createSupplies } from './installed.ts'
import { findJail } from './jail/jail.ts'
import { createJailHome } from './lifecycle.ts'
import { removeEnvironment } from './remove.ts'
import { type Berth, type BerthSpec, createBerths } from './reservation.ts'
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
  const ground = groundOf(options)
  const supplies = createSupplies(ground, { executable, ...(nsjailPath !== undefined && { nsjailPath }) })
  const slots = createSlots()
  const berths = createBerths(ground, slots)
  const environments = new Map<string, KeptEnvironment>()
  const onProxy = (id: string) => (socket: Duplex) =>
    options.serveProxy ? options.serveProxy(id, socket) : void socket.destroy()
  const creating = new Map<string, Promise<KeptEnvironment>>()

  const keep = (place: Place, meta: Meta, { controllers }: Capabilities, started?: StartedJail) => {
    const home = createJailHome({
      ground,
      place,
      meta,
      limited: controllers,
      join: nsjail => joinJail({ ground, supplies, place, meta, onProxy: onProxy(place.id) }, nsjail),
      start: () => startJail({ ground, supplies, place, meta, onProxy: onProxy(place.id) }),
      onRemoved() {
        environments.delete(place.id)
        if (meta.slot !== undefined) slots.release(meta.slot)
      },
    })
    const kept = keepEnvironment(home, started?.connection)
    // Without an image its files are the host's: to sync those would be to wait for all that anyone writes there.
    const environment = meta.image ? Object.assign(kept, { sync: () => syncInside(kept) }) : kept
    environments.set(place.id, environment)
    return environment
  }

  /** Keeps what was created wholly; removes what a server that died had begun. */
  const find = async (id: string, capabilities: Capabilities) => {
    const place = placeOf(ground.dataDirectory, id)
    try {
      const meta = await readMeta(place)
      if (!meta) return await removeEnvironment(ground, place)
      if (ground.root) closeStage(place)
      if (meta.slot !== undefined && !slots.claim(meta.slot)) log(`${id} has the user ids of another sandbox`)
      keep(place, meta, capabilities)
    } catch (error) {
      log(`${id}: ${messageOf(error)}`)
    }
  }

  /** What takes its time and nobody waits for. */
  const sweep = async () => {
    await emptyTrash(ground)
    const jails = await Promise.all([...environments.keys()].map(id => findJail(placeOf(ground.dataDirectory, id))))
    if (jails.every(jail => jail === undefined)) await eraseOldGuests(await supplies.guest())
  }

  const isRoomy = () => (ground.diskSpace?.state.level ?? 'enough') === 'enough'

  /** What is found out on a full disk is found out again. */
  let found: { capabilities: Promise<Capabilities>; wasRoomy: boolean } | undefined
  const able = () => {
    if (!found || (!found.wasRoomy && isRoomy())) {
      found = { capabilities: findCapabilities(ground), wasRoomy: isRoomy() }
    }
    return found.capabilities
  }

  const prepare = once(async () => {
    const sandboxes = sandboxesDirectory(ground.dataDirectory)
    await mkdir(sandboxes, { recursive: true, mode: 0o700 })
    // Loop devices are told apart by the real path of their image.
    ground.dataDirectory = realpathSync(ground.dataDirectory)
    await sweepLeftovers(ground)
    const capabilities = await able()
    await Promise.all((await readdir(sandboxes)).filter(isSafeId).map(id => find(id, capabilities)))
    const sweeping = sweep().catch(error => log(`sweeping the data directory: ${messageOf(error)}`))
    const endHousekeeping = startHousekeeping({
      environments: () => environments.values(),
      idleMs,
      onFailure: (id, error) => log(`looking after ${id}: ${messageOf(error)}`),
      also: () => haltFailedDisks(ground, environments),
    })
    const endGuard = guardDisks(ground, environments)
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
    const place = placeOf(ground.dataDirectory, spec.id)
    await ground.diskSpace?.assertEnough()
    const capabilities = await able()
    if (environments.has(spec.id) || existsSync(place.directory)) {
      throw new ApiError('conflict', 'The sandbox exists already.')
    }
    const { base: wanted = HOST } = spec
    const host = wanted === HOST
    const base = host ? await supplies.hostBase() : await resolveBase(ground, wanted)
    const imageMb = capabilities.noImages === undefined ? spec.limits.diskMb : undefined
    const berthSpec: BerthSpec = { base, baseInode: (await stat(base)).ino, host, imageMb }
    const berth = ground.root ? await berths.take(berthSpec) : undefined
    const image = berth?.disk !== undefined
    const meta: Meta = { ...(berth && { slot: berth.slot }), base, host, image, limits: { ...spec.limits } }
    try {
      await furnish(place, berth)
      const [commit, started, synced] = await Promise.allSettled([
        draftMeta(place, meta),
        startJail({ ground, supplies, place, meta, berth, onProxy: onProxy(place.id) }),
        image ? syncPath(place.image) : undefined,
      ])
      if (started.status === 'rejected') throw started.reason
      if (commit.status === 'rejected') throw commit.reason
      if (synced.status === 'rejected') throw synced.reason
      commit.value()
      // Its names: a create that was answered is there after a loss of power.
      await Promise.all([syncPath(place.directory), syncPath(sandboxesDirectory(ground.dataDirectory))])
      if (!existsSync(base)) throw new ApiError('invalid_request', `The base ${wanted} was removed meanwhile.`)
      return keep(place, meta, capabilities, started.value)
    } catch (error) {
      berth?.disk?.mount.close()
      await removeEnvironment(ground, place).then(
        () => berth && berths.drop(berth),
        // Its user ids stay taken, because something may still run under them.
        problem => log(`${spec.id} could not be removed: ${messageOf(problem)}`),
      )
      throw error
    } finally {
      if (ground.root && isRoomy()) berths.prepare(berthSpec)
    }
  }

  return {
    name: 'nsjail',
    isolation: 'namespaces',
    egress: 'proxy',
    check: () => probeHost(ground, executable, nsjailPath),

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
      await berths.close()
    },
  }
}

/** Makes an environment's directory, with its disk. */
async function furnish(place: Place, berth: Berth | undefined): Promise<void> {
  await mkdir(place.directory, { mode: 0o700 })
  if (berth?.disk) return rename(berth.disk.image, place.image)
  await mkdir(place.box, { mode: 0o711 })
  await chmod(place.box, 0o711)
}

/** Its disk is mounted for itself alone: nobody else's files are waited for. */
async function syncInside(environment: Environment): Promise<void> {
  await runShell(environment, { command: ['sync', '-f', '/'], timeoutMs: SYNC_WITHIN_MS })
}

function groundOf({ dataDirectory, diskSpace, log }: NsjailOptions): Ground {
  const uid = process.geteuid?.() ?? 0
  return { dataDirectory, root: uid === 0, uid, gid: process.getegid?.() ?? 0, diskSpace, log }
}
