import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { once } from '../../src/async/once.ts'
import type { Limits } from '../../src/plugin-api/index.ts'
import { objectOf } from '../../src/read/json.ts'
import type { DockerEngine } from './engine.ts'
import { EngineError } from './failure.ts'
import { seccompProfile } from './seccomp.ts'

/** What `GET /info` calls a limit that the engine can set. */
const flags = { memoryMb: 'MemoryLimit', processes: 'PidsLimit', cpus: 'CpuCfsQuota' } as const

/**
 * Storage that counts a container's own files, of Docker and of Podman: quotas of xfs. Those of btrfs and zfs count the
 * image too, and btrfs stops counting once it finds that it is wrong.
 */
const exactDrivers = ['overlay2', 'overlay']

/** What a container is made with, as far as that depends on the engine. */
export interface Choice {
  /** The engine's storage holds it to its disk limit. */
  hasQuota: boolean
  /** For `SecurityOpt`: the profile itself, as Docker wants it, or its file, as Podman does. Undefined: the engine's own. */
  seccomp: string | undefined
}

/** What the engine can; found once, and by trying. */
export interface Capabilities {
  /** Limits that the engine cannot set, for want of their cgroups. */
  findUnlimited(): Promise<(keyof Limits)[]>
  /** Makes a container by `make`, with the most that the engine takes. */
  create(wantsQuota: boolean, make: (choice: Choice) => Promise<void>): Promise<void>
}

export function createCapabilities(engine: DockerEngine, dataDirectory: string): Capabilities {
  const profile = seccompProfile(process.arch === 'arm64' ? 'arm64' : 'x64')
  const profileFile = join(dataDirectory, 'docker-seccomp.json')
  let seccomp: Choice['seccomp'] = profile
  let isWithoutQuota = false
  const info = once(async () => objectOf(await engine.call('GET', '/info')) ?? {})

  /** True when the next try may do. */
  const learn = (error: unknown, tried: Choice): boolean => {
    if (!(error instanceof EngineError)) return false
    if (tried.hasQuota && /storage[- ]opt|quota|unknown option/i.test(error.message)) {
      isWithoutQuota = true
      return true
    }
    const isUnread = /opening seccomp profile/i.test(error.message) || /no such file/i.test(error.message)
    if (tried.seccomp === undefined || !isUnread || !/seccomp profile/i.test(error.message)) return false
    if (tried.seccomp === profile) {
      mkdirSync(dataDirectory, { recursive: true, mode: 0o700 })
      writeFileSync(profileFile, profile)
      seccomp = profileFile
    } else seccomp = undefined
    return true
  }

  return {
    async findUnlimited() {
      const known = await info()
      return (['memoryMb', 'processes', 'cpus'] as const).filter(name => known[flags[name]] === false)
    },
    async create(wantsQuota, make) {
      const mayHaveQuota = wantsQuota && exactDrivers.includes(String((await info()).Driver))
      for (;;) {
        const choice: Choice = { hasQuota: mayHaveQuota && !isWithoutQuota, seccomp }
        try {
          return await make(choice)
        } catch (error) {
          if (!learn(error, choice)) throw error
        }
      }
    },
  }
}
