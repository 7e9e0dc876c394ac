import type { Duplex } from 'node:stream'
import { ApiError } from '../../src/errors.ts'
import type { GuestConnection } from '../../src/guest/host.ts'
import { executableInside } from '../../src/guest/install.ts'
import type { Environment } from '../../src/plugin.ts'
import { describeConfinement } from './confinement.ts'
import { nameOf } from './container.ts'
import type { DockerEngine } from './engine.ts'
import { EngineLost, unavailable } from './failure.ts'
import type { Made } from './labels.ts'
import { createLock } from './lock.ts'
import { watchPulse } from './pulse.ts'
import { joinContainer, removeContainer, startContainer, stateOf, stopContainer } from './start.ts'

/** An environment as the backend keeps it. */
export interface KeptEnvironment extends Environment {
  readonly made: Made
  /** Ends its processes with a line for the operator, unless it is in use again. */
  pauseIfIdle(idleMs: number): Promise<void>
  /** Ends its processes because of `reason`, which is then part of what confines it. */
  pauseBecause(reason: string): Promise<void>
  /** It is being destroyed, is to be destroyed when its engine is back, or is gone. */
  readonly isDestroyed: boolean
  /** True once after each use: something may have been written since the last call. */
  takeUsed(): boolean
  /** Connects to its guest, if its container runs: what a former server left running has the proxy again. */
  rejoin(): Promise<void>
  /** Lets go of the connection. The environment goes on. */
  release(): Promise<void>
}

export interface EnvironmentParts {
  engine: DockerEngine
  id: string
  made: Made
  /** Takes what processes inside connect to the proxy. */
  onProxy(socket: Duplex): void
  log(line: string): void
  /** Where the guest is inside. */
  guestDirectory: string
  /** One that is silent for this long is given up. */
  silentMs: number
  /** Makes sure that it is there, and of this build. */
  bringGuest(): Promise<void>
  /** Called when it is gone. */
  onDestroyed(): void
  /** Called when it could not be destroyed. */
  onDoomed(): void
  /** The connection to a new environment's guest. */
  connection?: GuestConnection
}

export function keepEnvironment(parts: EnvironmentParts): KeptEnvironment {
  const { engine, id, made, guestDirectory, silentMs, onProxy, log } = parts
  const container = nameOf(id)
  const lock = createLock()
  let connection: GuestConnection | undefined
  let lastUse = performance.now()
  let used = true
  let stopping = false
  /** False once it was stopped here and not started since. */
  let mayRun = true
  let destroyed: Promise<void> | undefined
  /** It is to be destroyed, and is no more for its users, whether that has worked yet or not. */
  let isDoomed = false
  let remark: string | undefined

  const keep = (opened: GuestConnection) => {
    connection = opened
    mayRun = true
    watchPulse(opened, silentMs)
    opened.closed.then(() => {
      if (connection === opened) connection = undefined
    })
    return opened
  }
  if (parts.connection) keep(parts.connection)

  /** The running container's guest, else that of the container started again. */
  const attach = async (): Promise<GuestConnection> => {
    if (isDoomed) throw gone()
    if (connection) return connection
    const state = await stateOf(engine, container)
    if (state === 'missing') throw new ApiError('sandbox_unavailable', 'The container of the sandbox is gone.')
    await parts.bringGuest()
    if (state === 'running') {
      try {
        return keep(await joinContainer(engine, container, guestDirectory, onProxy, silentMs))
      } catch (error) {
        if (error instanceof EngineLost) throw error
      }
    }
    if (state !== 'stopped') await stopContainer(engine, container)
    return keep(await startContainer(engine, container, guestDirectory, onProxy))
  }

  const reach = async (): Promise<GuestConnection> => {
    try {
      return await lock(attach)
    } catch (error) {
      throw unavailable('The sandbox cannot be reached', error)
    }
  }

  const use = async <T>(action: (guest: GuestConnection) => Promise<T>): Promise<T> => {
    if (isDoomed) throw gone()
    lastUse = performance.now()
    used = true
    const guest = connection && !stopping ? connection : await reach()
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
      await stopContainer(engine, container)
      mayRun = false
    } finally {
      stopping = false
    }
  }

  const isIdle = (idleMs: number) =>
    mayRun && !isDoomed && performance.now() - lastUse >= idleMs && (connection?.activeCalls ?? 0) === 0

  /** A process that was started to stay is a use, whoever looks at it. What does not answer is not spared for it. */
  const runsProcesses = async () => {
    const processes = await Promise.race([connection?.processes.list(), Bun.sleep(silentMs)]).catch(() => [])
    return (processes ?? []).some(({ exit }) => !exit)
  }

  return {
    id,
    made,
    get confinement() {
      return [...describeConfinement(made), ...(remark ? [remark] : [])]
    },
    get isDestroyed() {
      return isDoomed
    },
    executable: executableInside(guestDirectory),
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
    pause: () => lock(async () => (isDoomed ? undefined : stop())),
    pauseIfIdle: async idleMs => {
      if (!isIdle(idleMs)) return
      if (await runsProcesses()) {
        lastUse = performance.now()
        return
      }
      await lock(async () => {
        mayRun &&= (await stateOf(engine, container)) === 'running'
        if (!isIdle(idleMs)) return
        await stop()
        log(`${id} was idle and is paused; its next use starts it again`)
      })
    },
    pauseBecause: reason =>
      lock(async () => {
        if (isDoomed) return
        remark = `stopped at ${new Date().toISOString()}: ${reason}`
        await stop()
        log(`${id} is stopped: ${reason}`)
      }),
    takeUsed() {
      const answer = used || (connection?.activeCalls ?? 0) > 0
      used = false
      return answer
    },
    destroy() {
      isDoomed = true
      destroyed ??= lock(async () => {
        connection?.close()
        connection = undefined
        await removeContainer(engine, container)
        parts.onDestroyed()
      }).catch(error => {
        // The next call tries again, and so does who was told.
        destroyed = undefined
        parts.onDoomed()
        throw unavailable('The sandbox cannot be deleted', error)
      })
      return destroyed
    },
    rejoin: () =>
      lock(async () => {
        if (connection || isDoomed || (await stateOf(engine, container)) !== 'running') return
        await parts.bringGuest()
        keep(await joinContainer(engine, container, guestDirectory, onProxy, silentMs))
      }),
    release: () =>
      lock(async () => {
        connection?.close()
        connection = undefined
      }),
  }
}

const gone = () => new ApiError('sandbox_not_found', 'The sandbox was deleted.')
