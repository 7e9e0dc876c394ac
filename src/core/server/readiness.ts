import { assertWritable } from '../../db/writable.ts'
import { messageOf } from '../../errors.ts'
import type { Runtime } from '../runtime.ts'

/** How often backends are checked at most: a check may start a jail or a container, and anyone may ask. */
const TRIED_EVERY_MS = 30_000

export interface Readiness {
  /** Why the server is not ready for new work; empty when it is ready. */
  reasons: string[]
  /** What backends besides the default lack: the server works without them. */
  unavailable: string[]
}

/** Returns a function that tells how ready the server is. It never rejects. */
export function createReadiness({ backends, config, db, diskSpace, log }: Runtime): () => Promise<Readiness> {
  let tried: Promise<string[][]> | undefined
  let triedAt = Number.NEGATIVE_INFINITY
  /** The last state that was logged: a line at each check would let strangers fill the log. */
  let isWritable = true

  const tryBackend = async (backend: string) => {
    try {
      const checks = (await backends.get(backend)?.check()) ?? []
      // Only the names of checks: what they found is for the operator.
      return checks.filter(({ ok, required }) => required && !ok).map(({ name }) => `${backend}: ${name}`)
    } catch (error) {
      log(`readiness: ${messageOf(error)}`, 'error')
      return [`${backend}: its checks failed`]
    }
  }

  return async () => {
    if (performance.now() - triedAt >= TRIED_EVERY_MS) {
      triedAt = performance.now()
      tried = Promise.all(config.backends.map(tryBackend))
    }
    const [ofDefault = [], ...ofOthers] = (await tried) ?? []
    const reasons = [...ofDefault]
    if (diskSpace.state.level === 'full') reasons.push('the disk is full')
    try {
      assertWritable(db)
      isWritable = true
    } catch (error) {
      if (isWritable) log(`readiness: ${messageOf(error)}`, 'error')
      isWritable = false
      reasons.push('the database cannot be written')
    }
    return { reasons, unavailable: ofOthers.flat() }
  }
}
