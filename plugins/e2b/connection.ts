import { ApiError } from '../../src/errors.ts'
import type { Control } from './control.ts'
import { createEnvd, type Envd, NotRunning } from './envd.ts'
import { createKeepAlive } from './keep-alive.ts'
import type { E2bSandbox } from './sdk.ts'
import { killOthers, type MarkedCommands } from './spawn.ts'

export interface Connected {
  sandbox: E2bSandbox
  envd: Envd
}

/** This server's connection to one sandbox. */
export interface SandboxConnection {
  /** The commands and connections that are open. */
  readonly running: MarkedCommands
  /** True when the sandbox runs, as far as this server knows. */
  readonly isAttached: boolean
  /** Connects, which resumes a paused sandbox, and runs the action. The sandbox is not paused meanwhile. */
  use<T>(action: (connected: Connected) => Promise<T>): Promise<T>
  /** Makes the next use connect again. */
  forget(): void
  /** Fails all commands and connections, with this reason. */
  drop(reason: string): void
  /** Reports that the sandbox was paused. */
  paused(): void
  /** Stops extending the sandbox's time. */
  close(): void
}

export interface ConnectionParts {
  id: string
  sandboxId: string
  control: Control
  idleMs: number
  /** Identifies this server among those that used the sandbox. */
  server: string
  log(line: string): void
  /** The sandbox that was just created, if it was. */
  made?: E2bSandbox
  /** Throws when the sandbox was deleted. */
  assertExists(): void
}

export function connectSandbox(parts: ConnectionParts): SandboxConnection {
  const { id, sandboxId, control, idleMs, server, log, made, assertExists } = parts
  const running: MarkedCommands = new Set()
  let attached: Promise<Connected> | undefined
  /** Whether no foreground command of another server runs in it. */
  let isOwn = made !== undefined

  const keepAlive = createKeepAlive({
    idleMs,
    isBusy: () => running.size > 0,
    extend: ms => control.extend(sandboxId, ms),
    log: line => log(`${id}: ${line}`),
  })

  const attach = async (sandbox: E2bSandbox): Promise<Connected> => {
    keepAlive.renewed()
    const envd = createEnvd(sandbox.accessTo())
    if (!isOwn) await killOthers(envd, server)
    isOwn = true
    return { sandbox, envd }
  }
  if (made) attached = attach(made)

  /** Connects, which resumes a paused sandbox, unless it is connected and its time is not up. */
  const ready = (): Promise<Connected> => {
    assertExists()
    if (attached && keepAlive.isOver()) attached = undefined
    if (!attached) {
      const mine = control.connect(sandboxId, keepAlive.lengthMs).then(attach)
      attached = mine
      mine.catch(() => {
        if (attached === mine) attached = undefined
      })
    }
    return attached
  }

  const use = async <T>(action: (attached: Connected) => Promise<T>): Promise<T> => {
    keepAlive.used()
    const release = keepAlive.hold()
    try {
      const mine = ready()
      try {
        return await action(await mine)
      } catch (error) {
        if (!(error instanceof NotRunning)) throw error
        // It was paused or ended by others, or early. The action had no effect yet.
        const current = attached
        if (current && (await current.catch(() => undefined)) === (await mine)) attached = undefined
        return await action(await ready())
      }
    } catch (error) {
      throw error instanceof NotRunning ? new ApiError('sandbox_unavailable', `E2B: ${error.message}`) : error
    } finally {
      release()
      keepAlive.used()
    }
  }

  return {
    running,
    get isAttached() {
      return attached !== undefined && !keepAlive.isOver()
    },
    use,
    forget() {
      attached = undefined
    },
    drop(reason) {
      const error = new ApiError('sandbox_unavailable', reason)
      for (const marked of [...running]) marked.fail(error)
      running.clear()
      attached = undefined
    },
    paused: () => keepAlive.ended(),
    close: () => keepAlive.close(),
  }
}
