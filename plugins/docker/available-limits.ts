import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { once } from '../../src/async/once.ts'
import type { Limits } from '../../src/plugin-api/index.ts'
import { objectOf } from '../../src/read/json.ts'
import type { DockerEngine } from './engine.ts'
import { EngineError } from './failure.ts'
import type { CreatedWith } from './labels.ts'
import { assertRuntime } from './runtime.ts'
import { seccompProfile } from './seccomp.ts'

/** Fields of `GET /info` that say whether the engine can set a limit. */
const flags = { memoryMb: 'MemoryLimit', processes: 'PidsLimit', cpus: 'CpuCfsQuota' } as const

/**
 * Storage drivers of Docker and Podman whose quota counts a container's own files alone, by xfs. Those of btrfs and zfs count
 * the image too, and btrfs stops counting once its count is inconsistent.
 */
const exactDrivers = ['overlay2', 'overlay']

/** The part of a container's settings that depends on the engine. */
export interface EngineSettings {
  /** The engine's storage holds it to its disk limit. */
  hasQuota: boolean
  /** For `SecurityOpt`: the profile's text (Docker) or the path of its file (Podman). Undefined: the engine's own profile. */
  seccomp: string | undefined
}

/** What the engine can limit, found once by trying. */
export interface EngineLimits {
  /** Limits that the engine cannot set, because it lacks their cgroups. */
  findUnlimited(): Promise<(keyof Limits)[]>
  /** Calls `make` with fewer and fewer settings until the engine takes them. Rejects with any other failure. */
  create(
    container: Pick<CreatedWith, 'limits' | 'runtime'>,
    make: (settings: EngineSettings) => Promise<void>,
  ): Promise<void>
}

export function createEngineLimits(engine: DockerEngine, dataDirectory: string): EngineLimits {
  const profileOf = (runtime?: string) =>
    seccompProfile(process.arch === 'arm64' ? 'arm64' : 'x64', { ofChoice: runtime !== undefined })
  const setting = {
    text: profileOf,
    file(runtime?: string) {
      const path = join(dataDirectory, `docker-seccomp${runtime === undefined ? '' : '-of-choice'}.json`)
      mkdirSync(dataDirectory, { recursive: true, mode: 0o700 })
      writeFileSync(path, profileOf(runtime))
      return path
    },
    none: () => undefined,
  }
  /** Remembers in which form the engine accepts the profile, as far as its refusals have shown. */
  let seccomp: keyof typeof setting = 'text'
  let lacksQuota = false
  const info = once(async () => objectOf(await engine.call('GET', '/info')) ?? {})

  /** Learns from a refusal. True when the next try may work. */
  const learn = (error: unknown, tried: EngineSettings): boolean => {
    if (!(error instanceof EngineError)) return false
    if (tried.hasQuota && /storage[- ]opt|quota|unknown option/i.test(error.message)) {
      lacksQuota = true
      return true
    }
    const isProfileUnreadable = /opening seccomp profile/i.test(error.message) || /no such file/i.test(error.message)
    if (tried.seccomp === undefined || !isProfileUnreadable || !/seccomp profile/i.test(error.message)) return false
    seccomp = tried.seccomp.startsWith('/') ? 'none' : 'file'
    return true
  }

  return {
    async findUnlimited() {
      const answer = await info()
      return (['memoryMb', 'processes', 'cpus'] as const).filter(name => answer[flags[name]] === false)
    },
    async create({ limits, runtime }, make) {
      if (runtime !== undefined) await assertRuntime(engine, runtime)
      const mayHaveQuota = limits.diskMb !== undefined && exactDrivers.includes(String((await info()).Driver))
      for (;;) {
        const settings: EngineSettings = { hasQuota: mayHaveQuota && !lacksQuota, seccomp: setting[seccomp](runtime) }
        try {
          return await make(settings)
        } catch (error) {
          if (!learn(error, settings)) throw error
        }
      }
    },
  }
}
