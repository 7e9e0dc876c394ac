import { ApiError, messageOf } from '../../src/errors.ts'
import type { Environment, Limits, NetworkSpec } from '../../src/plugin-api/index.ts'
import { createInterpreter } from './code.ts'
import { connectSandbox } from './connection.ts'
import type { Control } from './control.ts'
import type { Envd } from './envd.ts'
import { filesInside } from './files.ts'
import { toE2bNetwork } from './network.ts'
import type { E2bSandbox } from './sdk.ts'
import { spawnInside } from './spawn.ts'
import { connectInside } from './tcp-over-stdio.ts'

export interface E2bEnvironment extends Environment {
  /** True when the sandbox runs, as far as this server knows. */
  readonly isRunning: boolean
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
  limits?: Limits
  log(line: string): void
  /** Called after the sandbox was deleted. */
  onDestroyed(): void
  /** For a new environment: the sandbox that was just created. */
  made?: E2bSandbox
}

export function createEnvironment(parts: EnvironmentParts): E2bEnvironment {
  const { id, sandboxId, control, idleMs, server, log } = parts
  let networkLine = parts.networkLine
  const interpreter = createInterpreter()
  let isThere = false
  let destroyed: Promise<void> | undefined
  const connection = connectSandbox({
    ...{ id, sandboxId, control, idleMs, server, log },
    ...(parts.made && { made: parts.made }),
    assertExists() {
      if (destroyed) throw new ApiError('sandbox_not_found', 'The sandbox was deleted.')
    },
  })
  const use = <T>(action: (envd: Envd) => Promise<T>) => connection.use(({ envd }) => action(envd))
  const spawn: Environment['spawn'] = options => use(envd => spawnInside(envd, options, server, connection.running))

  return {
    id,
    get isRunning() {
      return connection.isAttached
    },
    get confinement() {
      return [...parts.confinement, networkLine]
    },
    spawn,
    files: filesInside(use, spawn),
    connect: port => use(envd => connectInside(envd, port, server, connection.running)),
    hostOf(port) {
      // Requests to this address do not pass the server, so a sandbox that others paused since would not be resumed.
      connection.forget()
      return connection.use(async ({ sandbox }) => sandbox.hostOf(port))
    },
    async setNetwork(network: NetworkSpec) {
      const wanted = toE2bNetwork(network)
      // E2B changes the network only of a running sandbox.
      await connection.use(() => control.setNetwork(sandboxId, wanted))
      networkLine = wanted.line
    },
    code: {
      async isThere() {
        // An interpreter may still start later.
        isThere ||= await connection.use(({ sandbox }) => interpreter.isThere(sandbox))
        return isThere
      },
      run: (code, options) => connection.use(({ sandbox }) => interpreter.run(sandbox, code, options)),
    },
    ...(parts.limits && { limits: parts.limits }),
    usage: async () => (connection.isAttached ? await control.usage(sandboxId) : {}),
    async pause() {
      if (destroyed) return
      connection.drop('The sandbox was paused.')
      await control.pause(sandboxId)
      connection.paused()
    },
    destroy() {
      destroyed ??= (async () => {
        connection.drop('The sandbox was deleted.')
        connection.close()
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
      connection.close()
      connection.drop('The server is stopping.')
    },
  }
}
