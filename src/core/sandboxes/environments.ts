import type { Database } from 'bun:sqlite'
import { findPlugin } from '../../db/backends.ts'
import { keepSpawned } from '../../environment/server-side-processes.ts'
import { ApiError } from '../../errors.ts'
import type { Backend, EnvironmentProcesses } from '../../plugin-api/index.ts'
import type { Environments } from '../runtime.ts'

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
