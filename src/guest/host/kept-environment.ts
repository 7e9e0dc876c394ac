import { createLock } from '../../async/lock.ts'
import { ApiError, messageOf } from '../../errors.ts'
import type { Environment } from '../../plugin-api/index.ts'
import type { GuestConnection } from './connect.ts'
import { environmentOverGuest, type Use } from './through-guest.ts'

/** Where a guest lives: a jail, a container. One thing at a time is asked of it, but for `describe` and `usedMb`. */
export interface GuestHome {
  readonly id: string
  /** How this program's executable is run inside. */
  readonly executable: readonly string[]
  /** What confines it, in words for the operator. */
  describe(): string[]
  /** Connects to its guest, which is started when it does not run. */
  attach(): Promise<GuestConnection>
  /** Connects to its guest when it runs. */
  rejoin(): Promise<GuestConnection | undefined>
  isRunning(): Promise<boolean>
  /** Ends every process; the files stay. */
  stop(): Promise<void>
  /** Takes all of it away. Also when it is gone already. */
  remove(): Promise<void>
  /** Its bound on the disk, where nothing but a look now and then holds it. */
  readonly disk?: { limitMb: number; usedMb(): Promise<number> }
  log(line: string): void
}

/** An environment whose guest stays connected while it is used, and is started again by its next use. */
export interface KeptEnvironment extends Environment {
  /** It is being destroyed, is still to be destroyed, or is gone. */
  readonly isDestroyed: boolean
  /** Ends its processes with a line for the operator, unless it is in use again. */
  pauseIfIdle(idleMs: number): Promise<void>
  /** Ends its processes when its files have grown past their limit, which is then part of what confines it. */
  checkDisk(): Promise<void>
  /** Ends its processes, if it runs. Who waits for them gets the reason, which is its `trouble` until `recover` or its next start. */
  halt(reason: ApiError): Promise<void>
  recover(): void
  /** Connects to its guest, if it runs: what a former server left running has the proxy again. */
  rejoin(): Promise<void>
  /** Lets go of the connection. The environment goes on. */
  release(): Promise<void>
}

/** A guest that runs says at once what runs in it. */
const ANSWERS_WITHIN_MS = 5000

/** No file can be larger than the limit: who fills the disk by one file is told by that, and goes on. */
const DISK_TOLERANCE = 1.1

/** `connected` is that of a home that was just made. */
export function keepEnvironment(home: GuestHome, connected?: GuestConnection): KeptEnvironment {
  const { id, executable, log } = home
  const lock = createLock()
  let connection: GuestConnection | undefined
  let lastUse = performance.now()
  /** Something may have been written since the last look at the disk. */
  let isTouched = true
  let isStopping = false
  /** False once it was stopped here and not started since. */
  let mayRun = true
  let destroyed: Promise<void> | undefined
  /** It is no more for its users, whether its removal has worked yet or not. */
  let isDoomed = false
  let remark: string | undefined
  /** Why it does not run, or did not start. */
  let trouble: string | undefined

  const keep = (opened: GuestConnection) => {
    connection = opened
    mayRun = true
    trouble = undefined
    void opened.closed.then(() => {
      if (connection === opened) connection = undefined
    })
    return opened
  }
  if (connected) keep(connected)

  const attach = async (): Promise<GuestConnection> => {
    if (isDoomed) throw gone()
    if (connection) return connection
    try {
      return keep(await home.attach())
    } catch (error) {
      trouble = messageOf(error)
      throw error
    }
  }

  const use: Use = async action => {
    if (isDoomed) throw gone()
    lastUse = performance.now()
    isTouched = true
    const guest = connection && !isStopping ? connection : await lock(attach)
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

  const stop = async (reason?: ApiError) => {
    isStopping = true
    try {
      letGo(reason)
      await home.stop()
      mayRun = false
    } finally {
      isStopping = false
    }
  }

  const activeCalls = () => connection?.activeCalls ?? 0

  const isIdle = (idleMs: number) => mayRun && !isDoomed && performance.now() - lastUse >= idleMs && activeCalls() === 0

  /** A process that was started to stay is a use, whoever looks at it. What does not answer is not spared for it. */
  const runsProcesses = async () => {
    const processes = await Promise.race([connection?.processes.list(), Bun.sleep(ANSWERS_WITHIN_MS)]).catch(() => [])
    return (processes ?? []).some(({ exit }) => !exit)
  }

  return {
    id,
    executable,
    ...environmentOverGuest(use),
    get confinement() {
      return [...home.describe(), ...(remark ? [remark] : [])]
    },
    get trouble() {
      return trouble
    },
    get isDestroyed() {
      return isDoomed
    },
    pause: () => lock(async () => (isDoomed ? undefined : stop())),
    async pauseIfIdle(idleMs) {
      if (!isIdle(idleMs)) return
      if (await runsProcesses()) {
        lastUse = performance.now()
        return
      }
      await lock(async () => {
        mayRun &&= await home.isRunning()
        if (!isIdle(idleMs)) return
        await stop()
        log(`${id} was idle and is paused; its next use starts it again`)
      })
    },
    async checkDisk() {
      if (isDoomed || !home.disk || !(isTouched || activeCalls() > 0)) return
      isTouched = false
      const { limitMb, usedMb } = home.disk
      const used = await usedMb()
      if (used <= limitMb * DISK_TOLERANCE) return
      await lock(async () => {
        if (isDoomed) return
        const reason = `its files took ${used} MB, its limit is ${limitMb} MB`
        remark = `stopped at ${new Date().toISOString()}: ${reason}`
        await stop()
        log(`${id} is stopped: ${reason}`)
      })
    },
    halt: reason =>
      lock(async () => {
        if (isDoomed || !mayRun || !(await home.isRunning())) return
        await stop(reason)
        trouble = `stopped at ${new Date().toISOString()}: ${reason.message}`
        log(`${id} is ${trouble}`)
      }),
    recover() {
      trouble = undefined
    },
    destroy() {
      isDoomed = true
      destroyed ??= lock(async () => {
        letGo()
        await home.remove()
      }).catch(error => {
        // The next call tries again.
        destroyed = undefined
        throw error
      })
      return destroyed
    },
    rejoin: () =>
      lock(async () => {
        const found = connection || isDoomed ? undefined : await home.rejoin()
        if (found) keep(found)
      }),
    release: () => lock(async () => letGo()),
  }
}

const gone = () => new ApiError('sandbox_not_found', 'The sandbox was deleted.')
