import { causeOf } from '../../core/access/caller.ts'
import type { Observe } from '../../model/observation.ts'
import { findE2bRoute } from '../e2b/find-e2b-route.ts'
import type { FindRoute } from '../find-route.ts'
import type { Step } from './step.ts'

/** Gives each request an id, which its answer carries, and reports when it comes and when its answer begins. */
export const observeRequests =
  (observe: Observe, findRoute: FindRoute): Step =>
  async (context, next) => {
    const { id: requestId, address, request, preview, e2b } = context
    const begunAtMs = performance.now()
    const { method } = request
    const { pathname } = new URL(request.url)
    const traceparent = request.headers.get('traceparent')
    observe({ type: 'request.started', requestId, method, ...(traceparent !== null && { traceparent }) })
    const response = await next()
    const caller = context.admission?.caller
    observe({
      type: 'request.ended',
      ...(e2b ? findE2bRoute(e2b, method, pathname) : findRoute(method, pathname)),
      status: response.status,
      durationMs: performance.now() - begunAtMs,
      ...(caller && { teamId: caller.teamId }),
      cause: { ...(address !== undefined && { address }), ...(caller && causeOf(caller)), requestId },
    })
    // A sandbox's program may send such a header of its own.
    if (!preview && !(e2b?.kind === 'port' && response.headers.has(REQUEST_ID)))
      response.headers.set(REQUEST_ID, requestId)
    return response
  }

export const REQUEST_ID = 'x-request-id'
