import type { E2bParts } from '../e2b/step.ts'
import type { Step } from './step.ts'

/** Answers requests of E2B's clients. Their code is loaded with the first request. */
export function e2b(parts: E2bParts): Step {
  let loaded: ReturnType<typeof load> | undefined
  const load = async () => (await import('../e2b/step.ts')).createE2bSteps(parts)
  return async (context, next) => {
    if (!context.e2b) return await next()
    loaded ??= load()
    const answer = await loaded
    return await answer(context)
  }
}
