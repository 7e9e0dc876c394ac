import type { EnvironmentUsage } from '../../src/plugin-api/index.ts'
import { objectOf } from '../../src/read/json.ts'
import type { DockerEngine } from './engine.ts'

const WITHIN_MS = 10_000
/** The engine counts the files of a container one by one, which takes long. */
const DISK_EVERY_MS = 60_000

/** Reads what a container uses now. Its disk is looked at once a minute at most, and not waited for. */
export function createUsageReader(engine: DockerEngine, container: string): () => Promise<EnvironmentUsage> {
  let diskBytes: number | undefined
  let lookedAt = Number.NEGATIVE_INFINITY

  const lookAtDisk = async () => {
    const answer = await engine.call('GET', `/containers/${container}/json`, { query: { size: 'true' } })
    diskBytes = numberOf(objectOf(answer)?.SizeRw)
  }

  return async () => {
    const query = { stream: 'false', 'one-shot': 'true' }
    const answer = await engine.call('GET', `/containers/${container}/stats`, { query, timeoutMs: WITHIN_MS })
    const { memory_stats, cpu_stats, pids_stats } = objectOf(answer) ?? {}
    const memory = objectOf(memory_stats)
    const used = numberOf(memory?.usage)
    // The container does not run.
    if (used === undefined) return {}
    if (performance.now() - lookedAt > DISK_EVERY_MS) {
      lookedAt = performance.now()
      void lookAtDisk().catch(() => {})
    }
    const stats = objectOf(memory?.stats)
    const kept = numberOf(stats?.total_inactive_file) ?? numberOf(stats?.inactive_file) ?? 0
    const nanoseconds = numberOf(objectOf(objectOf(cpu_stats)?.cpu_usage)?.total_usage)
    const processes = numberOf(objectOf(pids_stats)?.current)
    return {
      memoryBytes: Math.max(0, used - kept),
      ...(nanoseconds !== undefined && { cpuMs: nanoseconds / 1_000_000 }),
      ...(processes !== undefined && { processes }),
      ...(diskBytes !== undefined && { diskBytes }),
    }
  }
}

const numberOf = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined)
