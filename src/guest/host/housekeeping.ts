import type { KeptEnvironment } from './kept-environment.ts'

const LOOK_EVERY_MS = 5000
const LOOK_AT_MOST_EVERY_MS = 100

export interface HousekeepingOptions {
  environments(): Iterable<KeptEnvironment>
  /** True for an environment that waits for its first use, and is not idle before. */
  isSpare(environment: KeptEnvironment): boolean
  /** 0 never pauses. */
  idleMs: number
  onFailure(environmentId: string, error: unknown): void
  /** What else is looked after in each round. Never rejects. */
  also?(): Promise<void>
}

/**
 * Looks after environments that nobody waits for: pauses idle ones, stops those that have grown past their disk limit,
 * and removes what could not be removed. Returns what ends it.
 */
export function startHousekeeping({
  environments,
  isSpare,
  idleMs,
  onFailure,
  also,
}: HousekeepingOptions): () => Promise<void> {
  const everyMs = idleMs > 0 ? Math.min(LOOK_EVERY_MS, Math.max(idleMs / 2, LOOK_AT_MOST_EVERY_MS)) : LOOK_EVERY_MS
  let round: Promise<void> | undefined

  const lookAfter = async (environment: KeptEnvironment) => {
    if (environment.isDestroyed) return await environment.destroy()
    if (idleMs > 0 && !isSpare(environment)) await environment.pauseIfIdle(idleMs)
    await environment.checkDisk()
  }
  const look = async () => {
    await also?.()
    for (const environment of [...environments()]) {
      await lookAfter(environment).catch(error => onFailure(environment.id, error))
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
