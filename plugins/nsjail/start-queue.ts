import { availableParallelism } from 'node:os'
import { createLimit } from '../../src/async/limit.ts'
import { settlesWithin } from '../../src/async/timeout.ts'

/** More than one start runs at once, because a start also waits for the disk and for other processes. */
const AT_ONCE_PER_CPU = 2
/** A jail that does not come up must not keep others from starting. */
const COUNTS_FOR_MS = 1000

/**
 * Starts jails in order, a few at once. In a burst the first are ready early, none is ready later than when all compete, and other
 * requests are answered in between.
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
