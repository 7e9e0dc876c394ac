import { mkdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Config } from '../../core/config.ts'
import type { Log } from '../../core/runtime.ts'
import { wordsOf } from '../../errors.ts'
import type { ProbeResult, SelftestedBackend } from '../../model/selftest.ts'
import { configOf, openSubject } from '../../selftest/open-subject.ts'
import type { Probe } from '../../selftest/probe.ts'
import { runProbes } from '../../selftest/run.ts'
import { FailedChecks } from '../../start/backend.ts'
import { startGuard } from '../temporary/cleaner.ts'
import { newDataDirectory } from '../temporary/data-directory.ts'

/** What is to be tested: a backend, on docker with one of the engine's runtimes. */
export interface Chosen {
  backend: string
  runtime?: string
}

export interface Test {
  config: Config
  /** The settings that `config` was read from, without those of backends. */
  settings: readonly string[]
  probes: readonly Probe[]
  log: Log
  signal: AbortSignal
  onResult(result: ProbeResult): void
}

/** A runtime that is the engine's default needs no name. */
export const nameOf = ({ backend, runtime }: Chosen): string =>
  runtime === undefined ? backend : `${backend} on ${runtime}`

/**
 * Runs the probes on one backend, in a data directory of their own below that of the configuration. What a kill leaves of it is removed by
 * the guard. Rejects with the reason of `signal` when that has aborted; nothing of it is left in every case.
 */
export async function testBackend(chosen: Chosen, test: Test): Promise<SelftestedBackend> {
  const { config, settings, probes, log, signal, onResult } = test
  const dataDirectory = join(config.dataDirectory, newDataDirectory())
  // Where every user can come, unlike the data directory: a sandbox is not to be kept from it by that alone.
  const hostDirectory = join(tmpdir(), `threadbox-selftest-${crypto.randomUUID()}`)
  const guard = await startGuard({ dataDirectory, settings: settingsOf(settings, chosen), beside: hostDirectory })
  const begunAtMs = performance.now()
  const end = (rest: Omit<SelftestedBackend, 'backend' | 'runtime' | 'ms'>): SelftestedBackend => ({
    ...chosen,
    ...rest,
    ms: Math.round(performance.now() - begunAtMs),
  })
  let isClean = true
  try {
    await mkdir(dataDirectory, { mode: 0o700 })
    const own = configOf(config, { ...chosen, dataDirectory })
    const { subject, close } = await openSubject({ config: own, hostDirectory, log, signal })
    try {
      const results = await runProbes(subject, probes, onResult)
      return end({ isolation: subject.isolation, probes: results })
    } finally {
      // What fails to go is for the guard.
      await close().catch(error => {
        isClean = false
        log(`removing the sandboxes: ${wordsOf(error)}`, 'error')
      })
    }
  } catch (error) {
    signal.throwIfAborted()
    return end({ probes: [], [error instanceof FailedChecks ? 'notReady' : 'failed']: wordsOf(error) })
  } finally {
    const remove = (path: string) => rm(path, { recursive: true, force: true })
    // With the data directory the guard would lose sight of what is left.
    if (isClean) await Promise.all([remove(dataDirectory), remove(hostDirectory)]).catch(() => (isClean = false))
    await guard.dismiss(isClean)
  }
}

/** For the guard, which reads its configuration itself. */
const settingsOf = (settings: readonly string[], { backend, runtime }: Chosen): string[] => [
  ...settings,
  ...[`--backend=${backend}`, `--backends=${backend}`],
  ...(runtime === undefined ? [] : [`--docker-runtime=${runtime}`]),
]
