import { createLock } from '../../async/lock.ts'
import { once } from '../../async/once.ts'
import { beforeTimeout } from '../../async/timeout.ts'
import { ApiError, messageOf } from '../../errors.ts'
import type { Environment, EnvironmentUsage, Isolation, Limits } from '../../plugin-api/index.ts'
import type { GuestConnection } from './connect.ts'
import { type DiskLimit, watchDisk } from './disk-limit.ts'
import { environmentOverGuest, type Use } from './through-guest.ts'

/** Where a guest lives: a jail, a container. Its functions are called one at a time, except `describe`, `usage` and `usedMb`. */
export interface GuestHome {
  readonly id: string
  /** How this program's executable is run inside. */
  readonly executable: readonly string[]
  /** Absent when its isolation is the backend's. */
  readonly isolation?: Isolation
  /** What confines it, as lines for the operator. */
  describe(): string[]
  /** Connects to its guest, which is started when it does not run. */
  attach(): Promise<GuestConnection>
  /** Connects to its guest when it runs. */
  rejoin(): Promise<GuestConnection | undefined>
  isRunning(): Promise<boolean>
  readonly limits: Limits
  /** Reads what it uses, without starting it. */
  usage(): Promise<EnvironmentUsage>
  /** Ends every process; the files stay. */
  stop(): Promise<void>
  /** Removes all of it. Idempotent. */
  remove(): Promise<void>
  /** The limit of its files, where the kernel does not enforce one. */
  readonly disk?: DiskLimit
  log(line: string): void
}

/** An environment whose guest stays connected while it is used, and is started again by its next use. */
export interface KeptEnvironment extends Environment {
  /** It is being destroyed, is still to be destroyed, or is gone. */
  readonly isDestroyed: boolean
  /** True when it runs and its guest is connected. */
  readonly isConnected: boolean
  /** Ends its processes with a line for the operator, unless it is in use again. */
  pauseIfIdle(idleMs: number): Promise<void>
  /** Ends its processes when its files have grown past their limit, which is then part of what confines it. */
  checkDisk(): Promise<void>
  /** Ends its processes, if it runs. Open calls fail with the reason, which is its `trouble` until `recover` or its next start. */
  halt(reason: ApiError): Promise<void>
  recover(): void
  /** Connects to its guest, if it runs, so that processes which a former server left have the proxy again. */
  rejoin(): Promise<void>
  /** Lets go of the connection. The environment goes on. */
  release(): Promise<void>
}

/** A guest that runs answers at once. */
const ANSWERS_WITHIN_MS = 5000

/**
 * `connected` is the connection to a home that was just made.
 *
 * Over 100 lines: one state, whose changes are right only when they are read together.
 */
export function keepEnvironment(home: GuestHome, connected?: GuestConnection): KeptEnvironment {
  const { id, executable, log } = home
  const lock = createLock()
  const disk = watchDisk(home)
  /** Running until it is known to be stopped. Doomed from the first `destroy` on, also while its removal is retried. */
  let state: 'running' | 'paused' | 'doomed' = 'running'
  let connection: GuestConnection | undefined
  let lastUse = performance.now()
  /** Why it does not run, or did not start. */
  let trouble: string | undefined

  const isDoomed = () => state === 'doomed'
  const move = (to: 'running' | 'paused') => {
    if (!isDoomed()) state = to
  }

  const keep = (opened: GuestConnection) => {
    connection = opened
    move('running')
    trouble = undefined
    void opened.closed.then(() => {
      if (connection === opened) connection = undefined
    })
    return opened
  }
  if (connected) keep(connected)

  const attach = async (): Promise<GuestConnection> => {
    if (isDoomed()) throw gone()
    if (connection) return connection
    try {
      return keep(await home.attach())
    } catch (error) {
      trouble = messageOf(error)
      throw error
    }
  }

  const use: Use = async action => {
    if (isDoomed()) throw gone()
    lastUse = performance.now()
    disk.touched()
    const guest = connection ?? (await lock(attach))
    try {
      return await action(guest)
    } finally {
      lastUse = performance.now()
    }
  }

  const letGo = (reason?: ApiError) => {
    connection?.close(reason)
    connection = undefined
  }

  /** The connection goes first: whoever uses it from then on waits for the lock, and starts it again. */
  const stop = async (reason?: ApiError) => {
    letGo(reason)
    await home.stop()
    move('paused')
  }

  const remove = once(() =>
    lock(async () => {
      letGo()
      await home.remove()
    }),
  )

  const activeCalls = () => connection?.activeCalls ?? 0

  const isIdle = (idleMs: number) => state === 'running' && performance.now() - lastUse >= idleMs && activeCalls() === 0

  return {
    id,
    executable,
    ...environmentOverGuest(use),
    limits: home.limits,
    ...(home.isolation && { isolation: home.isolation }),
    usage: async () => (state === 'running' ? await home.usage() : {}),
    get confinement() {
      return [...home.describe(), ...disk.remarks]
    },
    get trouble() {
      return trouble
    },
    get isConnected() {
      return state === 'running' && connection !== undefined
    },
    get isDestroyed() {
      return isDoomed()
    },
    pause: () => lock(async () => (isDoomed() ? undefined : stop())),
    async pauseIfIdle(idleMs) {
      if (!isIdle(idleMs)) return
      if (await runsProcesses(connection)) {
        lastUse = performance.now()
        return
      }
      await lock(async () => {
        if (state === 'running' && !(await home.isRunning())) move('paused')
        if (!isIdle(idleMs)) return
        await stop()
        log(`${id} was idle and is paused; its next use starts it again`)
      })
    },
    async checkDisk() {
      const excess = isDoomed() ? undefined : await disk.findExcess(activeCalls() > 0)
      if (excess === undefined) return
      await lock(async () => {
        if (isDoomed()) return
        disk.remark(`stopped at ${new Date().toISOString()}: ${excess}`)
        await stop()
        log(`${id} is stopped: ${excess}`)
      })
    },
    halt: reason =>
      lock(async () => {
        if (state !== 'running' || !(await home.isRunning())) return
        await stop(reason)
        trouble = `stopped at ${new Date().toISOString()}: ${reason.message}`
        log(`${id} is ${trouble}`)
      }),
    recover() {
      trouble = undefined
    },
    destroy() {
      state = 'doomed'
      return remove()
    },
    rejoin: () =>
      lock(async () => {
        const found = connection || isDoomed() ? undefined : await home.rejoin()
        if (found) keep(found)
      }),
    release: () => lock(async () => letGo()),
  }
}

/** Background processes count as use. A guest that does not answer in time counts as idle. */
async function runsProcesses(guest: GuestConnection | undefined): Promise<boolean> {
  if (!guest) return false
  const processes = await beforeTimeout(ANSWERS_WITHIN_MS, guest.processes.list(), () => []).catch(() => [])
  return processes.some(({ exit }) => !exit)
}

const gone = () => new ApiError('sandbox_not_found', 'The sandbox was deleted.')
