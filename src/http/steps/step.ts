import type { RequestContext } from '../context.ts'

/** Answers a request itself, or calls `next` for the answer of the steps after it. */
export type Step = (context: RequestContext, next: () => Promise<Response>) => Promise<Response>

/** Makes one function of all steps, the first outermost. The last step must not call `next`. */
export function inOrder(steps: readonly Step[]): (context: RequestContext) => Promise<Response> {
  const [first, ...rest] = steps
  if (!first) return () => Promise.reject(new Error('no step answered the request'))
  const after = inOrder(rest)
  return context => first(context, () => after(context))
}
