import { loadavg } from 'node:os'
import { version } from '../../../package.json'
import { once } from '../../async/once.ts'
import { getTeamName } from '../../db/teams.ts'
import { ApiError } from '../../errors.ts'
import { classesOf } from '../../model/isolation.ts'
import type { SelftestReport } from '../../model/selftest.ts'
import type { Backend, Check } from '../../plugin-api/index.ts'
import { assertKey, type Caller } from '../access/caller.ts'
import { DEFAULT_TEAM } from '../access/teams.ts'
import type { Runtime } from '../runtime.ts'
import { ofServer } from './checks-of-backends.ts'
import { findSelftest } from './selftest-file.ts'

const KB = 1024

/** Throws forbidden for every key that is not of the operator's own team: a server's teams may not know each other. */
export function assertOperator({ db }: Runtime, caller: Caller): void {
  assertKey(caller, 'see the server')
  if (getTeamName(db, caller.teamId) !== DEFAULT_TEAM)
    throw new ApiError('forbidden', `Only keys of the team ${DEFAULT_TEAM} see the server.`)
}

/** Describes the server, its machine and its settings, for its operator. Throws forbidden. */
export async function describeServer(runtime: Runtime, caller: Caller) {
  assertOperator(runtime, caller)
  const { config, backends, engines, gateway, diskSpace, loop } = runtime
  const memory = await readMemory()
  return {
    version,
    startedAt: new Date(performance.timeOrigin).toISOString(),
    machine: {
      cpus: navigator.hardwareConcurrency,
      load: loadavg()[0] ?? 0,
      memoryBytes: memory.MemTotal ?? 0,
      availableMemoryBytes: memory.MemAvailable ?? 0,
    },
    disk: diskSpace.state,
    memoryBytes: process.memoryUsage.rss(),
    ...(loop && { eventLoopDelayMs: loop.delayMs() }),
    backends: [...backends.values()].map(each => ({
      name: each.name,
      isolation: each.isolation,
      isolations: classesOf(each),
      isDefault: each.name === config.backend,
      takesNew: config.backends.includes(each.name),
    })),
    engines: [...engines.keys()],
    defaultModel: gateway.defaultModel ?? null,
    settings: config.shown,
  }
}

/** Lines of /proc/meminfo in bytes. */
async function readMemory(): Promise<Record<string, number>> {
  const lines = (await Bun.file('/proc/meminfo').text()).matchAll(/^(\w+):\s+(\d+) kB$/gm)
  return Object.fromEntries([...lines].map(([, name = '', kb]) => [name, Number(kb) * KB]))
}

/**
 * Checks what the server's backends need, as `threadbox doctor` does. Calls at the same time share one check. What only a backend
 * besides the default needs is not required. Throws forbidden.
 */
export async function checkServer(runtime: Runtime, caller: Caller): Promise<Check[]> {
  assertOperator(runtime, caller)
  const { backends, config } = runtime
  const tried = await Promise.all(
    config.backends.map(async name => {
      const backend = backends.get(name)
      return backend ? ofServer(config, name, await tryOnce(backend)) : []
    }),
  )
  return tried.flat()
}

/** The last result of `threadbox selftest` on this data directory. It is null when no result was kept. Throws forbidden. */
export async function getLastSelftest(runtime: Runtime, caller: Caller): Promise<SelftestReport | null> {
  assertOperator(runtime, caller)
  return (await findSelftest(runtime.config.dataDirectory)) ?? null
}

async function tryOnce(backend: Backend): Promise<Check[]> {
  const running = checks.get(backend) ?? once(() => backend.check())
  checks.set(backend, running)
  return await running().finally(() => checks.delete(backend))
}

const checks = new WeakMap<object, () => Promise<Check[]>>()
