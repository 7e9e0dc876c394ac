import { ApiError } from '../../src/errors.ts'
import type { GuestConnection } from '../../src/guest/host.ts'
import { executableInside } from '../../src/guest/install.ts'
import type { Environment } from '../../src/plugin.ts'
import type { Controller } from './cgroup.ts'
import { GUEST_INSIDE } from './config.ts'
import { describeConfinement } from './confinement.ts'
import { findJail, killJail } from './jail.ts'
import type { Ground, Place } from './layout.ts'
import { createLock } from './lock.ts'
import type { Meta } from './meta.ts'
import { removeEnvironment, stopJail } from './remove.ts'
import type { StartedJail } from './start.ts'

/** A guest that runs says at once what runs in it. */
const ANSWERS_WITHIN_MS = 5000

/** An environment as the backend keeps it. */
export interface KeptEnvironment extends Environment {
  readonly meta: Meta
  /** Ends its processes with a line for the operator, unless it is in use again. */
  pauseIfIdle(idleMs: number): Promise<void>
  /** Ends its processes because of `reason`, which is then part of what confines it. */
  pauseBecause(reason: string): Promise<void>
  /** It is being destroyed, or is gone. */
  readonly isDestroyed: boolean
  /** True once after each use: something may have been written since the last call. */
  takeUsed(): boolean
  /** Connects to its jail, if one runs: what a former server left running has the proxy again. */
  rejoin(): Promise<void>
  /** Lets go of the connection. The environment goes on. */
  release(): Promise<void>
}

export interface EnvironmentParts {
  ground: Ground
  place: Place
  meta: Meta
  /** What cgroups limit here, until a start has told. */
  limited: Controller[]
  /** Connects to its jail, which runs as this process. */
  join(nsjail: number): Promise<StartedJail>
  /** Starts its jail; none runs. */
  start(): Promise<StartedJail>
  /** Called when it is gone. */
  onDestroyed(): void
  /** The jail that was just made, for a new environment. */
  started?: StartedJail
}

export function keepEnvironment(parts: EnvironmentParts): KeptEnvironment {
  const { ground, place, meta } = parts
  const lock = createLock()
  let connection: GuestConnection | undefined
  let limited = parts.limited
  let lastUse = performance.now()
  let used = true
  let stopping = false
  /** False once it was stopped here and not started since. */
  let mayRun = true
  let destroyed: Promise<void> | undefined
  let remark: string | undefined

  const keep = (jail: StartedJail) => {
    const opened = jail.connection
    connection = opened
    limited = jail.limited
    mayRun = true
    opened.closed.then(() => {
      if (connection === opened) connection = undefined
    })
    return opened
  }
  if (parts.started) keep(parts.started)

  /** The running jail's guest, else a new jail's on the same files. */
  const attach = async (): Promise<GuestConnection> => {
    if (destroyed) throw gone()
    if (connection) return connection
    const running = await findJail(place)
    if (running !== undefined) {
      try {
        return keep(await parts.join(running))
      } catch {
        await killJail(place)
      }
    }
    return keep(await parts.start())
  }

  const use = async <T>(action: (guest: GuestConnection) => Promise<T>): Promise<T> => {
    if (destroyed) throw gone()
    lastUse = performance.now()
    used = true
    const guest = connection && !stopping ? connection : await lock(attach)
    try {
      return await action(guest)
    } finally {
      lastUse = performance.now()
    }
  }

  const stop = async () => {
    stopping = true
    try {
      connection?.close()
      connection = undefined
      await stopJail(ground, place)
      mayRun = false
    } finally {
      stopping = false
    }
  }

  const isIdle = (idleMs: number) =>
    mayRun && !destroyed && performance.now() - lastUse >= idleMs && (connection?.activeCalls ?? 0) === 0

  /** A process that was started to stay is a use, whoever looks at it. What does not answer is not spared for it. */
  const runsProcesses = async () => {
    const processes = await Promise.race([connection?.processes.list(), Bun.sleep(ANSWERS_WITHIN_MS)]).catch(() => [])
    return (processes ?? []).some(({ exit }) => !exit)
  }

  return {
    id: place.id,
    meta,
    get confinement() {
      return [...describeConfinement(ground, meta, limited), ...(remark ? [remark] : [])]
    },
    get isDestroyed() {
      return destroyed !== undefined
    },
    executable: executableInside(GUEST_INSIDE),
    spawn: options => use(guest => guest.spawn(options)),
    connect: port => use(guest => guest.connect(port)),
    processes: {
      start: options => use(guest => guest.processes.start(options)),
      list: () => use(guest => guest.processes.list()),
      get: pid => use(guest => guest.processes.get(pid)),
      read: (pid, offset, options) => use(guest => guest.processes.read(pid, offset, options)),
      write: (pid, bytes, signal) => use(guest => guest.processes.write(pid, bytes, signal)),
      closeStdin: pid => use(guest => guest.processes.closeStdin(pid)),
      signal: (pid, name) => use(guest => guest.processes.signal(pid, name)),
      resize: (pid, size) => use(guest => guest.processes.resize(pid, size)),
      remove: pid => use(guest => guest.processes.remove(pid)),
    },
    files: {
      read: (path, signal) => use(guest => guest.files.read(path, signal)),
      write: (path, body, signal) => use(guest => guest.files.write(path, body, signal)),
      info: path => use(guest => guest.files.info(path)),
      list: (path, depth) => use(guest => guest.files.list(path, depth)),
      makeDirectory: path => use(guest => guest.files.makeDirectory(path)),
      rename: (from, to) => use(guest => guest.files.rename(from, to)),
      remove: path => use(guest => guest.files.remove(path)),
    },
    pause: () => lock(async () => (destroyed ? undefined : stop())),
    pauseIfIdle: async idleMs => {
      if (!isIdle(idleMs)) return
      if (await runsProcesses()) {
        lastUse = performance.now()
        return
      }
      await lock(async () => {
        mayRun &&= (await findJail(place)) !== undefined
        if (!isIdle(idleMs)) return
        await stop()
        ground.log(`${place.id} was idle and is paused; its next use starts it again`)
      })
    },
    pauseBecause: reason =>
      lock(async () => {
        if (destroyed) return
        await stop()
        remark = `stopped at ${new Date().toISOString()}: ${reason}`
        ground.log(`${place.id} is stopped: ${reason}`)
      }),
    takeUsed() {
      const answer = used || (connection?.activeCalls ?? 0) > 0
      used = false
      return answer
    },
    destroy() {
      destroyed ??= lock(async () => {
        connection?.close()
        connection = undefined
        await removeEnvironment(ground, place)
        parts.onDestroyed()
      }).catch(error => {
        // The next call tries again.
        destroyed = undefined
        throw error
      })
      return destroyed
    },
    rejoin: () =>
      lock(async () => {
        const running = connection || destroyed ? undefined : await findJail(place)
        if (running !== undefined) keep(await parts.join(running))
      }),
    release: () =>
      lock(async () => {
        connection?.close()
        connection = undefined
      }),
  }
}

const gone = () => new ApiError('sandbox_not_found', 'The sandbox was deleted.')
