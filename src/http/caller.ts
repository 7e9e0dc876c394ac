import type { Caller } from '../core/access/access.ts'
import type { Visitor } from '../core/sandboxes/preview-links.ts'

const callers = new WeakMap<Request, Caller>()

const admissions = new WeakMap<Request, () => void>()

/** Admits a request by `decide`, which throws for one that may not come in, and may be asked again. */
export function admitBy(request: Request, decide: () => void): void {
  decide()
  admissions.set(request, decide)
}

/** Whether a request would still be admitted: what it opened may outlive the key, token or link that it came with. */
export function isAdmitted(request: Request): boolean {
  try {
    admissions.get(request)?.()
    return true
  } catch {
    return false
  }
}

/** Remembers who sent a request, for as long as it lives. */
export function admit(request: Request, caller: Caller): void {
  callers.set(request, caller)
}

/** Who sent this request. Throws for one that was not admitted: a route that skipped authentication. */
export function callerOf(request: Request): Caller {
  const caller = callers.get(request)
  if (!caller) throw new Error('a request without a caller')
  return caller
}

const visitors = new WeakMap<Request, Visitor>()

/** Remembers who came by a link. To all routes but previews, such a request has no caller. */
export function admitVisitor(request: Request, visitor: Visitor): void {
  visitors.set(request, visitor)
}

/** Who sent this request, with a key or token or by a link. */
export function callerOrVisitorOf(request: Request): { caller: Caller; visitor?: Visitor | undefined } {
  const visitor = visitors.get(request)
  return { caller: visitor?.caller ?? callerOf(request), visitor }
}

/** The key that a request came with, or that made its token or link: what is bounded for each. Empty for nobody's. */
export function keyOf(request: Request): string {
  const caller = visitors.get(request)?.caller ?? callers.get(request)
  return caller ? (caller.keyId ?? caller.teamId) : ''
}
