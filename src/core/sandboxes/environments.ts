import type { Database } from 'bun:sqlite'
import { createHolds } from '../../async/hold.ts'
import { findPlugin } from '../../db/backends.ts'
import { keepSpawned } from '../../environment/server-side-processes.ts'
import { ApiError } from '../../errors.ts'
import type { Backend, EnvironmentProcesses } from '../../plugin-api/index.ts'
import type { Environments } from '../runtime.ts'

export function createEnvironments(db: Database, backends: ReadonlyMap<string, Backend>): Environments {
  const kept = new Map<string, EnvironmentProcesses>()
  const holds = createHolds()
  /** Since `takeHeld` was last asked. */
  let held = new Set<string>()
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
      held.add(environmentId)
      return holds.hold(environmentId)
    },
    takeHeld() {
      const ids = [...held]
      held = new Set(holds.names())
      return ids
    },
    async destroy(sandbox) {
      kept.delete(sandbox.environmentId)
      await (await find(sandbox))?.destroy()
    },
  }
}
