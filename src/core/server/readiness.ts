import { assertWritable } from '../../db/writable.ts'
import { messageOf } from '../../errors.ts'
import type { Check } from '../../plugin-api/index.ts'
import type { Runtime } from '../runtime.ts'

/** How often backends are checked at most: a check may start a jail or a container, and anyone may ask. */
const TRIED_EVERY_MS = 30_000

export interface Readiness {
  /** Why the server is not ready for new work; empty when it is ready. */
  reasons: string[]
  /** What backends besides the default lack, and what any lacks for one class of sandboxes: the server works without it. */
  unavailable: string[]
}

/** Names of failed checks: `lacking` keeps a backend from making sandboxes, `partly` from making those of one class. */
interface Tried {
  lacking: string[]
  partly: string[]
}

/** Returns a function that tells how ready the server is. It never rejects. */
export function createReadiness({ backends, config, db, diskSpace, log }: Runtime): () => Promise<Readiness> {
  let tried: Promise<Tried[]> | undefined
  let triedAt = Number.NEGATIVE_INFINITY
  /** The last state that was logged: a line at each check would let strangers fill the log. */
  let isWritable = true

  const tryBackend = async (backend: string): Promise<Tried> => {
    try {
      const failed = ((await backends.get(backend)?.check()) ?? []).filter(({ ok }) => !ok)
      // Only the names of checks: what they found is for the operator.
      const named = (checks: readonly Check[]) => checks.map(({ name }) => `${backend}: ${name}`)
      return {
        lacking: named(failed.filter(({ required }) => required)),
        // The backend makes sandboxes of other classes without these.
        partly: named(failed.filter(({ isolation }) => isolation !== undefined)),
      }
    } catch (error) {
      log(`readiness: ${messageOf(error)}`, 'error')
      return { lacking: [`${backend}: its checks failed`], partly: [] }
    }
  }

  return async () => {
    if (performance.now() - triedAt >= TRIED_EVERY_MS) {
      triedAt = performance.now()
      tried = Promise.all(config.backends.map(tryBackend))
    }
    const all = (await tried) ?? []
    const [ofDefault, ...ofOthers] = all
    const reasons = [...(ofDefault?.lacking ?? [])]
    if (diskSpace.state.level === 'full') reasons.push('the disk is full')
    try {
      assertWritable(db)
      isWritable = true
    } catch (error) {
      if (isWritable) log(`readiness: ${messageOf(error)}`, 'error')
      isWritable = false
      reasons.push('the database cannot be written')
    }
    return {
      reasons,
      unavailable: [...ofOthers.flatMap(({ lacking }) => lacking), ...all.flatMap(({ partly }) => partly)],
    }
  }
}
