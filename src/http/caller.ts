import type { Caller } from '../core/access/caller.ts'
import { type Admission, getContext, type RequestContext } from './context.ts'

/** Who sent this request. Throws for one that came by a link, and for one that was not admitted. */
export function getCaller(request: Request): Caller {
  const { admission } = getContext(request)
  if (!admission || admission.visitor) throw new Error('a request without a caller')
  return admission.caller
}

/** Who sent this request, with a key or token or by a link. Throws for one that was not admitted. */
export function getCallerOrVisitor(request: Request): Pick<Admission, 'caller' | 'visitor'> {
  const { admission } = getContext(request)
  if (!admission) throw new Error('a request without a caller')
  return admission
}

/** The key that a request came with, or that made its token or link. Limits count by it. Empty when there is no key. */
export function getKey({ admission }: RequestContext): string {
  return admission ? (admission.caller.keyId ?? admission.caller.teamId) : ''
}
