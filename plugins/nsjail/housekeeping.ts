import { messageOf } from '../../src/errors.ts'
import type { KeptEnvironment } from './environment.ts'
import { type Ground, placeOf } from './layout.ts'
import { run } from './run.ts'

const LOOK_EVERY_MS = 5000
const LOOK_AT_MOST_EVERY_MS = 100

/**
 * Looks after environments that nobody waits for: pauses idle ones, and stops those on a plain directory that have
 * grown past their disk limit. Returns what ends it.
 */
export function startHousekeeping(
  ground: Ground,
  environments: () => Iterable<KeptEnvironment>,
  idleMs: number,
): () => Promise<void> {
  const everyMs = idleMs > 0 ? Math.min(LOOK_EVERY_MS, Math.max(idleMs / 2, LOOK_AT_MOST_EVERY_MS)) : LOOK_EVERY_MS
  let round: Promise<void> | undefined

  const look = async () => {
    for (const environment of [...environments()]) {
      try {
        if (idleMs > 0) await environment.pauseIfIdle(idleMs)
        await checkDisk(ground, environment)
      } catch (error) {
        ground.log(`looking after ${environment.id}: ${messageOf(error)}`)
      }
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

async function checkDisk(ground: Ground, environment: KeptEnvironment): Promise<void> {
  const { limits, image } = environment.meta
  if (image || limits.diskMb === undefined || !environment.takeUsed()) return
  const used = await usedMb(placeOf(ground.dataDirectory, environment.id).box)
  if (used <= limits.diskMb) return
  await environment.pauseBecause(`its files took ${used} MB, its limit is ${limits.diskMb} MB`)
}

/** du answers also when files vanish under it, which makes it fail. */
const diskUsage = 'nice -n 19 du -skx -- "$1" 2>/dev/null; true'

/** MiB that a directory's files take on the disk. What cannot be read is not counted. */
async function usedMb(directory: string): Promise<number> {
  const output = await run(['sh', '-c', diskUsage, 'sh', directory])
  return Math.ceil(Number.parseInt(output, 10) / 1024) || 0
}
