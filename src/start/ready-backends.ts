import type { Log, ReadyBackends } from '../core/runtime.ts'
import { messageOf } from '../errors.ts'
import { FailedChecks } from './backend.ts'

/** A check may start a container, which takes a while. */
const TRIED_EVERY_MS = 30_000

/**
 * Tells which of these backends are ready. `assert` checks what one needs and rejects when something is missing; after a while it checks
 * again. A backend that was ready stays ready: a create reports a later failure by itself.
 */
export function createReadyBackends(
  names: readonly string[],
  assert: (name: string) => Promise<void>,
  log: Log,
): ReadyBackends {
  const tries = new Map<string, { trouble: Promise<string | undefined>; again: number }>()
  const said = new Map<string, string>()

  const attempt = async (name: string): Promise<string | undefined> => {
    try {
      await assert(name)
      if (said.delete(name)) log(`the backend ${name} is ready now`)
      return undefined
    } catch (error) {
      const what = messageOf(error)
      if (said.get(name) !== what)
        log(`the backend ${name} is not ready, no sandbox can be made there:\n${what}`, 'error')
      said.set(name, what)
      // The message has only names: the findings are for the operator.
      return error instanceof FailedChecks ? error.names.join(', ') : 'its checks failed'
    }
  }

  return {
    async troubleOf(name) {
      if (!names.includes(name)) return undefined
      const last = tries.get(name)
      if (last && performance.now() < last.again) return await last.trouble
      const next = { trouble: attempt(name), again: Number.POSITIVE_INFINITY }
      tries.set(name, next)
      const trouble = await next.trouble
      if (trouble !== undefined) next.again = performance.now() + TRIED_EVERY_MS
      return trouble
    },
  }
}
