import { assertWritable } from '../../db/writable.ts'
import { messageOf } from '../../errors.ts'
import type { Runtime } from '../runtime.ts'

/** Trying a backend may take a jail or a container: strangers may ask as often as they like. */
const TRIED_EVERY_MS = 30_000

export interface Readiness {
  /** Why new work is better sent elsewhere: empty when the server is ready. */
  reasons: string[]
  /** What is missing of the backends that are not the default: the server works without them. */
  unavailable: string[]
}

/** Returns a function that tells how ready the server is. It never rejects. */
export function createReadiness({ backends, config, db, diskSpace, log }: Runtime): () => Promise<Readiness> {
  let tried: Promise<string[][]> | undefined
  let triedAt = Number.NEGATIVE_INFINITY
  /** A line each time would let strangers fill the log. */
  let isWritable = true

  const tryBackend = async (backend: string) => {
    try {
      const checks = (await backends.get(backend)?.check()) ?? []
      // Names alone: what was found is for the operator.
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
