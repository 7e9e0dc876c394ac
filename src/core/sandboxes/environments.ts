import type { Database } from 'bun:sqlite'
import { createHolds } from '../../async/hold.ts'
import { createLock } from '../../async/lock.ts'
import { findPlugin } from '../../db/backends.ts'
import { keepSpawned } from '../../environment/server-side-processes.ts'
import { ApiError } from '../../errors.ts'
import type { Backend, EnvironmentProcesses } from '../../plugin-api/index.ts'
import type { Environments, Trust, Uses } from '../runtime.ts'

export function createEnvironments(
  db: Database,
  backends: ReadonlyMap<string, Backend>,
  uses: Pick<Uses, 'note' | 'forget'>,
  trust: Pick<Trust, 'bind' | 'forget'>,
): Environments {
  const kept = new Map<string, EnvironmentProcesses>()
  const holds = createHolds()
  /** Since `takeHeld` was last asked. */
  let held = new Set<string>()
  /** The environments that ran at the last `handStopped`. */
  let running = new Set<string>()
  /** The environments that have stopped and whose stop is not stored yet. */
  let stopped = new Set<string>()
  const handInTurn = createLock()
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
      uses.note(sandbox)
      return backendOf(sandbox.backend).egress === 'own' ? environment : trust.bind(environment)
    },
    troubleOf: ({ backend, environmentId }) => backends.get(backend)?.troubleOf?.(environmentId),
    findRunning(name) {
      const ids = backends.get(name)?.listRunning?.()
      return ids && new Set(ids)
    },
    handStopped: store =>
      handInTurn(async () => {
        const before = running
        running = new Set([...backends.values()].flatMap(backend => backend.listRunning?.() ?? []))
        stopped = stopped.union(before.difference(running))
        if (stopped.size === 0) return
        await store([...stopped])
        stopped = new Set()
      }),
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
      uses.forget(sandbox.environmentId)
      trust.forget(sandbox.environmentId)
      await (await find(sandbox))?.destroy()
    },
  }
}
