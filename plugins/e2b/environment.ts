import { ApiError, messageOf } from '../../src/errors.ts'
import type { Environment, NetworkSpec } from '../../src/plugin-api/index.ts'
import { createInterpreter } from './code.ts'
import type { Control } from './control.ts'
import { createEnvd, type Envd, NotRunning } from './envd.ts'
import { filesInside } from './files.ts'
import { keepLease, type Lease } from './keep-alive.ts'
import { networkOf } from './network.ts'
import type { Box } from './sdk.ts'
import { type Calls, killOthers, spawnInside } from './spawn.ts'
import { connectInside } from './tcp-over-stdio.ts'

export interface KeptEnvironment extends Environment {
  /** Lets go of connections and timers. The sandbox goes on, and is paused when its time is up. */
  release(): void
}

export interface EnvironmentParts {
  id: string
  sandboxId: string
  control: Control
  idleMs: number
  /** Names this server to the next one. */
  server: string
  /** The lines for the operator, without the network's. */
  confinement: string[]
  networkLine: string
  log(line: string): void
  /** Called when it is gone. */
  onDestroyed(): void
  /** The sandbox that was just made, for a new environment. */
  made?: Box
}

interface Attached {
  box: Box
  envd: Envd
}

export function keepEnvironment(parts: EnvironmentParts): KeptEnvironment {
  const { id, sandboxId, control, idleMs, server, log } = parts
  const calls: Calls = new Set()
  let networkLine = parts.networkLine
  let attached: Promise<Attached> | undefined
  const interpreter = createInterpreter()
  let isThere = false
  let destroyed: Promise<void> | undefined
  /** Nothing of another server runs in it. */
  let isOwn = parts.made !== undefined

  const lease: Lease = keepLease({
    idleMs,
    isBusy: () => calls.size > 0,
    extend: ms => control.extend(sandboxId, ms),
    log: line => log(`${id}: ${line}`),
  })

  const attach = async (box: Box): Promise<Attached> => {
    lease.renewed()
    const envd = createEnvd(box.accessTo())
    if (!isOwn) await killOthers(envd, server)
    isOwn = true
    return { box, envd }
  }
  if (parts.made) attached = attach(parts.made)

  /** Connects, which resumes what is paused, unless that was done and its time is not up. */
  const ready = (): Promise<Attached> => {
    if (destroyed) throw gone()
    if (attached && lease.isOver()) attached = undefined
    if (!attached) {
      const mine = control.connect(sandboxId, lease.lengthMs).then(attach)
      attached = mine
      mine.catch(() => {
        if (attached === mine) attached = undefined
      })
    }
    return attached
  }

  const useBox = async <T>(action: (attached: Attached) => Promise<T>): Promise<T> => {
    lease.used()
    const release = lease.hold()
    try {
      const mine = ready()
      try {
        return await action(await mine)
      } catch (error) {
        if (!(error instanceof NotRunning)) throw error
        // It was paused or ended by others, or before its time: nothing was done yet.
        const current = attached
        if (current && (await current.catch(() => undefined)) === (await mine)) attached = undefined
        return await action(await ready())
      }
    } catch (error) {
      throw error instanceof NotRunning ? new ApiError('sandbox_unavailable', `E2B: ${error.message}`) : error
    } finally {
      release()
      lease.used()
    }
  }
  const use = <T>(action: (envd: Envd) => Promise<T>) => useBox(({ envd }) => action(envd))

  /** What waits for the sandbox waits in vain. */
  const drop = (reason: string) => {
    const error = new ApiError('sandbox_unavailable', reason)
    for (const call of [...calls]) call.fail(error)
    calls.clear()
    attached = undefined
  }

  const spawn: Environment['spawn'] = options => use(envd => spawnInside(envd, options, server, calls))

  return {
    id,
    get confinement() {
      return [...parts.confinement, networkLine]
    },
    spawn,
    files: filesInside(use, spawn),
    connect: port => use(envd => connectInside(envd, port, server, calls)),
    hostOf(port) {
      // What is known may be of one that others paused or ended since, and none of its requests come by here.
      attached = undefined
      return useBox(async ({ box }) => box.hostOf(port))
    },
    async setNetwork(network: NetworkSpec) {
      const wanted = networkOf(network)
      // Only one that runs can be told.
      await useBox(() => control.setNetwork(sandboxId, wanted))
      networkLine = wanted.line
    },
    code: {
      async isThere() {
        // What has none now may be about to start it.
        isThere ||= await useBox(({ box }) => interpreter.isThere(box))
        return isThere
      },
      run: (code, options) => useBox(({ box }) => interpreter.run(box, code, options)),
    },
    async pause() {
      if (destroyed) return
      drop('The sandbox was paused.')
      await control.pause(sandboxId)
      lease.ended()
    },
    destroy() {
      destroyed ??= (async () => {
        drop('The sandbox was deleted.')
        lease.close()
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
      lease.close()
      drop('The server is stopping.')
    },
  }
}

const gone = () => new ApiError('sandbox_not_found', 'The sandbox was deleted.')
