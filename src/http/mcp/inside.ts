import type { Memory } from '../../async/shared-memory.ts'
import { assertScope } from '../../core/access/scopes.ts'
import type { Runtime } from '../../core/runtime.ts'
import { createContext, getContext, type RequestContext } from '../context.ts'
import type { FindRoute } from '../find-route.ts'
import { findScopes } from '../scopes.ts'
import { audited } from '../steps/audited.ts'
import { bodyMemory } from '../steps/body-memory.ts'
import { callerLimits } from '../steps/caller-limits.ts'
import { commitChanges } from '../steps/commit.ts'
import { failures } from '../steps/failures.ts'
import { observeRequests } from '../steps/observe-requests.ts'
import { inOrder, type Step } from '../steps/step.ts'
import type { Traffic } from '../traffic.ts'
import type { Ask } from './ask.ts'

/** The parts of the server that the requests of tools pass through, like requests of clients. */
export interface InsideParts {
  runtime: Runtime
  traffic: Traffic
  bodies: Memory
  findRoute: FindRoute
  /** The API's routes. */
  handle(request: Request): Promise<Response>
}

/** Makes the function that sends requests for the caller of a request. */
export type InsideOf = (request: Request) => Ask

/** The caller's headers that say at which address this server was reached: links contain that address. */
const placeHeaders = ['host', 'x-forwarded-host', 'x-forwarded-proto', 'x-forwarded-prefix', 'traceparent']

/** A reader inside the server is not watched for slowness: its own client ends the call. */
const UNWATCHED_MS = 2 ** 31 - 1

/**
 * Makes the function that sends requests to the API's routes within another request and as its caller: with the caller's scopes
 * and limits, and with their own rows in the audit log. So a tool can do what its routes can, and nothing more.
 */
export function createInside({ runtime, traffic, bodies, findRoute, handle }: InsideParts): InsideOf {
  const answer = inOrder([
    audited(runtime.audit),
    observeRequests(runtime.observers.observe, findRoute),
    failures(runtime.log),
    scoped,
    bodyMemory(bodies),
    opened,
    callerLimits(runtime, traffic),
    commitChanges(runtime.db),
    ({ request }) => handle(request),
  ])
  return outer => async question => {
    const { received, address, admission } = getContext(outer)
    const { method, path, body, events, signal } = question
    const headers = new Headers({ accept: events ? 'text/event-stream' : 'application/json' })
    for (const name of placeHeaders) {
      const value = outer.headers.get(name)
      if (value !== null) headers.set(name, value)
    }
    if (body) headers.set('content-type', 'application/json')
    const { href } = new URL(path, outer.url)
    const request = new Request(href, { method, headers, signal, ...(body && { body: JSON.stringify(body) }) })
    const context = createContext(received, request, { address })
    if (!admission || admission.visitor) throw new Error('a request without a caller')
    const { caller } = admission
    const sent = { requestId: context.id, ...(address !== undefined && { address }) }
    context.admission = { ...admission, caller: { ...caller, request: sent } }
    return await answer(context)
  }
}

const scoped: Step = async ({ request, admission }, next) => {
  const wanted = findScopes(request.method, new URL(request.url).pathname)
  if (wanted && admission) assertScope(admission.caller, wanted)
  return await next()
}

/** Does what the traffic step does for a connection. The limit on open work is the outer request's. */
const opened: Step = async (context, next) => {
  const share = new DisposableStack()
  context.share = share
  let isFlowing = false
  context.startFlow = () => {
    isFlowing = true
    return flowOf(context, () => share.dispose())
  }
  try {
    return await next()
  } finally {
    if (!isFlowing) share.dispose()
  }
}

const flowOf = ({ request }: RequestContext, onEnd: () => void) => ({
  signal: request.signal,
  turn: () => undefined,
  stalledMs: UNWATCHED_MS,
  onStalled() {},
  isInside: true,
  onEnd,
})
