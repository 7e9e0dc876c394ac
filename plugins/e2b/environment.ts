import { ApiError, messageOf } from '../../src/errors.ts'
import type { Environment, NetworkSpec } from '../../src/plugin-api/index.ts'
import { createInterpreter } from './code.ts'
import type { Control } from './control.ts'
import { createEnvd, type Envd, NotRunning } from './envd.ts'
import { filesInside } from './files.ts'
import { createKeepAlive, type KeepAlive } from './keep-alive.ts'
import { toE2bNetwork } from './network.ts'
import type { E2bSandbox } from './sdk.ts'
import { killOthers, type MarkedCommands, spawnInside } from './spawn.ts'
import { connectInside } from './tcp-over-stdio.ts'

export interface E2bEnvironment extends Environment {
  /** Closes connections and timers. The sandbox goes on until its time is up, and is then paused. */
  release(): void
}

export interface EnvironmentParts {
  id: string
  sandboxId: string
  control: Control
  idleMs: number
  /** Identifies this server among those that used the sandbox. */
  server: string
  /** The lines for the operator, without the line on the network. */
  confinement: string[]
  networkLine: string
  log(line: string): void
  /** Called after the sandbox was deleted. */
  onDestroyed(): void
  /** For a new environment: the sandbox that was just created. */
  made?: E2bSandbox
}

interface Attached {
  box: E2bSandbox
  envd: Envd
}

export function createEnvironment(parts: EnvironmentParts): E2bEnvironment {
  const { id, sandboxId, control, idleMs, server, log } = parts
  const running: MarkedCommands = new Set()
  let networkLine = parts.networkLine
  let attached: Promise<Attached> | undefined
  const interpreter = createInterpreter()
  let isThere = false
  let destroyed: Promise<void> | undefined
  /** Whether no foreground command of another server runs in it. */
  let isOwn = parts.made !== undefined

  const keepAlive: KeepAlive = createKeepAlive({
    idleMs,
    isBusy: () => running.size > 0,
    extend: ms => control.extend(sandboxId, ms),
    log: line => log(`${id}: ${line}`),
  })

  const attach = async (box: E2bSandbox): Promise<Attached> => {
    keepAlive.renewed()
    const envd = createEnvd(box.accessTo())
    if (!isOwn) await killOthers(envd, server)
    isOwn = true
    return { box, envd }
  }
  if (parts.made) attached = attach(parts.made)

  /** Connects, which resumes a paused sandbox, unless it is connected and its time is not up. */
  const ready = (): Promise<Attached> => {
    if (destroyed) throw gone()
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

  const useSandbox = async <T>(action: (attached: Attached) => Promise<T>): Promise<T> => {
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
  const use = <T>(action: (envd: Envd) => Promise<T>) => useSandbox(({ envd }) => action(envd))

  /** Fails all commands and connections, with this reason. */
  const drop = (reason: string) => {
    const error = new ApiError('sandbox_unavailable', reason)
    for (const marked of [...running]) marked.fail(error)
    running.clear()
    attached = undefined
  }

  const spawn: Environment['spawn'] = options => use(envd => spawnInside(envd, options, server, running))

  return {
    id,
    get confinement() {
      return [...parts.confinement, networkLine]
    },
    spawn,
    files: filesInside(use, spawn),
    connect: port => use(envd => connectInside(envd, port, server, running)),
    hostOf(port) {
      // Requests to this address do not pass the server, so a sandbox that others paused since would not be resumed.
      attached = undefined
      return useSandbox(async ({ box }) => box.hostOf(port))
    },
    async setNetwork(network: NetworkSpec) {
      const wanted = toE2bNetwork(network)
      // E2B changes the network only of a running sandbox.
      await useSandbox(() => control.setNetwork(sandboxId, wanted))
      networkLine = wanted.line
    },
    code: {
      async isThere() {
        // An interpreter may still start later.
        isThere ||= await useSandbox(({ box }) => interpreter.isThere(box))
        return isThere
      },
      run: (code, options) => useSandbox(({ box }) => interpreter.run(box, code, options)),
    },
    async pause() {
      if (destroyed) return
      drop('The sandbox was paused.')
      await control.pause(sandboxId)
      keepAlive.ended()
    },
    destroy() {
      destroyed ??= (async () => {
        drop('The sandbox was deleted.')
        keepAlive.close()
        await control.kill(sandboxId)
        parts.onDestroyed()
      })().catch(error => {
        // The next call tries again.
        destroyed = undefined
        log(`${id} could not be deleted: ${messageOf(error)}`)
        throw error
      })
      return destroyed
    },
    release() {
      keepAlive.close()
      drop('The server is stopping.')
    },
  }
}

const gone = () => new ApiError('sandbox_not_found', 'The sandbox was deleted.')
