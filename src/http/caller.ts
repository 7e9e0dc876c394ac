import type { Caller } from '../core/access.ts'

const callers = new WeakMap<Request, Caller>()

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
