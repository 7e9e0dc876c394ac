import { createHolds } from './hold.ts'
import { createLimit, type Limit } from './limit.ts'

/** Runs what is given to it one after the other, in order. */
export const createLock = (): Limit => createLimit(1)

/** A lock for each key. Nothing is kept of a key that nobody uses. */
export function createKeyedLock(): <T>(key: string, work: () => Promise<T>) => Promise<T> {
  const locks = new Map<string, Limit>()
  const holds = createHolds(key => locks.delete(key))
  return async (key, work) => {
    using _hold = holds.hold(key)
    const lock = locks.get(key) ?? createLock()
    locks.set(key, lock)
    return await lock(work)
  }
}
