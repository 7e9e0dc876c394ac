import { objectOf } from '../../src/json.ts'
import type { Limits } from '../../src/plugin.ts'
import type { DockerEngine } from './engine.ts'
import { EngineError } from './failure.ts'

/** What `GET /info` calls a limit that the engine can set. */
const flags = { memoryMb: 'MemoryLimit', processes: 'PidsLimit', cpus: 'CpuCfsQuota' } as const

/** Limits that the engine cannot set, for want of their cgroups. */
export async function findUnlimited(engine: DockerEngine): Promise<(keyof Limits)[]> {
  const info = objectOf(await engine.call('GET', '/info')) ?? {}
  return (['memoryMb', 'processes', 'cpus'] as const).filter(name => info[flags[name]] === false)
}

/** Whether the engine's storage holds containers to a size; known once one was made. */
export interface Storage {
  /** Makes a container by `make`, with a quota if there is one. Resolves to whether it has it. */
  create(diskMb: number | undefined, make: (hasQuota: boolean) => Promise<void>): Promise<boolean>
}

export function createStorage(): Storage {
  let isWithout = false
  return {
    async create(diskMb, make) {
      const tries = diskMb !== undefined && !isWithout
      try {
        await make(tries)
        return tries
      } catch (error) {
        if (!tries || !isAboutQuota(error)) throw error
        await make(false)
        isWithout = true
        return false
      }
    },
  }
}

const isAboutQuota = (error: unknown) =>
  error instanceof EngineError && /storage[- ]opt|quota|unknown option/i.test(error.message)
