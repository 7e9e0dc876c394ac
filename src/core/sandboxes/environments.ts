import type { Database } from 'bun:sqlite'
import { findPlugin } from '../../db/backends.ts'
import { keepSpawned } from '../../environment/server-side-processes.ts'
import { ApiError } from '../../errors.ts'
import type { Backend, Environment, EnvironmentProcesses, EnvironmentSpec } from '../../plugin-api/index.ts'

/** The environments of all sandboxes, each on the backend that made it. */
export interface Environments {
  create(spec: EnvironmentSpec & { backend: string }): Promise<Environment>
  /** Throws sandbox_unavailable when the backend is not here or has lost it. */
  get(sandbox: { backend: string; environmentId: string }): Promise<Environment>
  /** Why it does not run, or did not start when it was to. Asks nobody. */
  troubleOf(sandbox: { backend: string; environmentId: string }): string | undefined
  /** Those of an environment that `get` gave: its own, or kept here for a backend that keeps none. */
  processesOf(environment: Environment): EnvironmentProcesses
  /** Says that one is in use, until this is disposed of. */
  hold(environmentId: string): Disposable
  /** Those that are held now, or were since this was last asked. */
  takeHeld(): string[]
  /** Idempotent; also for one that is not there. */
  destroy(sandbox: { backend: string; environmentId: string }): Promise<void>
}

export function createEnvironments(db: Database, backends: ReadonlyMap<string, Backend>): Environments {
  const kept = new Map<string, EnvironmentProcesses>()
  const held = new Map<string, number>()
  const backendOf = (name: string): Backend => {
    const backend = backends.get(name)
    if (backend) return backend
    const file = findPlugin(db, name)
    const why = file ? `which this server was not started with: --plugin ${file}` : 'which this server does not have'
    throw new ApiError('sandbox_unavailable', `The sandbox is on the backend ${name}, ${why}.`)
  }
  const find = (sandbox: { backend: string; environmentId: string }) =>
    backendOf(sandbox.backend).open(sandbox.environmentId)

  return {
    create: ({ backend, ...spec }) => backendOf(backend).create(spec),
    async get(sandbox) {
      const environment = await find(sandbox)
      if (!environment) throw new ApiError('sandbox_unavailable', 'The sandbox has lost its environment.')
      return environment
    },
    troubleOf: ({ backend, environmentId }) => backends.get(backend)?.troubleOf?.(environmentId),
    processesOf(environment) {
      const processes = environment.processes ?? kept.get(environment.id) ?? keepSpawned(environment)
      if (!environment.processes) kept.set(environment.id, processes)
      return processes
    },
    hold(environmentId) {
      const count = (by: number) => held.set(environmentId, (held.get(environmentId) ?? 0) + by)
      let isHeld = true
      count(1)
      return {
        [Symbol.dispose]() {
          if (isHeld) count(-1)
          isHeld = false
        },
      }
    },
    takeHeld() {
      const ids = [...held.keys()]
      for (const [id, count] of held) if (count === 0) held.delete(id)
      return ids
    },
    async destroy(sandbox) {
      kept.delete(sandbox.environmentId)
      await (await find(sandbox))?.destroy()
    },
  }
}
