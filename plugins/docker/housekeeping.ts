import { ApiError, messageOf } from '../../src/errors.ts'
import { objectOf } from '../../src/json.ts'
import { nameOf } from './container.ts'
import type { DockerEngine } from './engine.ts'
import type { KeptEnvironment } from './environment.ts'
import { EngineLost } from './failure.ts'

const LOOK_EVERY_MS = 5000
const LOOK_AT_MOST_EVERY_MS = 100
const MIB = 1024 * 1024
/** No file can be larger than the limit: who fills it by one file is told by that, and goes on. */
const TOLERANCE = 1.1

export interface HousekeepingOptions {
  engine: DockerEngine
  environments: () => Iterable<KeptEnvironment>
  idleMs: number
  /** Ids of environments that could not be removed. */
  doomed: Set<string>
  remove(id: string): Promise<void>
  log(line: string): void
}

/**
 * Looks after environments that nobody waits for: pauses idle ones, stops those without a quota that have grown past their
 * disk limit, and removes what could not be removed. Returns what ends it.
 */
export function startHousekeeping(options: HousekeepingOptions): () => Promise<void> {
  const { engine, environments, idleMs, doomed, remove, log } = options
  const everyMs = idleMs > 0 ? Math.min(LOOK_EVERY_MS, Math.max(idleMs / 2, LOOK_AT_MOST_EVERY_MS)) : LOOK_EVERY_MS
  let round: Promise<void> | undefined

  const lookAfter = async (id: string, work: () => Promise<void>) => {
    try {
      await work()
    } catch (error) {
      // That the engine is down is told to who needs it; the next round looks again.
      const isDown = error instanceof ApiError || error instanceof EngineLost
      if (!isDown) log(`looking after ${id}: ${messageOf(error)}`)
    }
  }
  const look = async () => {
    for (const id of [...doomed]) {
      await lookAfter(id, async () => {
        await remove(id)
        doomed.delete(id)
      })
    }
    for (const environment of [...environments()]) {
      await lookAfter(environment.id, async () => {
        if (idleMs > 0) await environment.pauseIfIdle(idleMs)
        await checkDisk(engine, environment)
      })
    }
  }

  const timer = setInterval(() => {
    round ??= look().finally(() => {
      round = undefined
    })
  }, everyMs)
  timer.unref()

  return async () => {
    clearInterval(timer)
    await round
  }
}

async function checkDisk(engine: DockerEngine, environment: KeptEnvironment): Promise<void> {
  const { limits, hasQuota } = environment.made
  if (environment.isDestroyed || hasQuota || limits.diskMb === undefined || !environment.takeUsed()) return
  const answer = await engine.call('GET', `/containers/${nameOf(environment.id)}/json`, { query: { size: 'true' } })
  const used = Math.ceil(Number(objectOf(answer)?.SizeRw ?? 0) / MIB)
  if (used <= limits.diskMb * TOLERANCE) return
  await environment.pauseBecause(`its files took ${used} MB, its limit is ${limits.diskMb} MB`)
}
