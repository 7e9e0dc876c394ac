import { availableParallelism } from 'node:os'
import { createLimit } from '../../src/async/limit.ts'
import { settlesWithin } from '../../src/async/timeout.ts'

/** A start also waits for the disk, and for other processes. */
const AT_ONCE_PER_CPU = 2
/** A jail that does not come up must not keep others from starting. */
const COUNTS_FOR_MS = 1000

/**
 * Starts what is given to it in order, a few at once. Of a burst the first are ready early, none is later than when all compete, and
 * other requests are answered in between.
 */
export type StartQueue = <T>(start: () => Promise<T>) => Promise<T>

export function createStartQueue(atOnce = AT_ONCE_PER_CPU * availableParallelism()): StartQueue {
  const limit = createLimit(atOnce)
  return start =>
    new Promise((resolve, reject) => {
      void limit(async () => {
        const started = start()
        started.then(resolve, reject)
        await settlesWithin(COUNTS_FOR_MS, started)
      })
    })
}
