import type { Database } from 'bun:sqlite'
import { randomBytes } from 'node:crypto'
import type { Loan, Memory } from '../async/shared-memory.ts'
import { newId, now } from '../db/id.ts'
import { ApiError } from '../errors.ts'
import type { Observe } from '../model/observation.ts'
import { secretPrefixes } from '../model/prefixes.ts'
import { readBody } from '../read/bytes.ts'
import { parseJson } from '../read/json.ts'
import { type BudgetRefusal, type Budgets, explainRefusal, type Reservation } from './budgets.ts'
import { errorResponse } from './error-response.ts'
import { estimateTokens } from './meter.ts'
import { type ModelCall, startModelCall } from './model-call.ts'
import type { Prices } from './prices.ts'
import type { Provider } from './providers.ts'
import { type CallUsage, createRecorder } from './recorder.ts'
import { type Admitted, admit, MAX_BODY_BYTES, type Rejected } from './request.ts'
import { type Route, upstreamUrl, withModel } from './routes.ts'
import type { GatewayRun, Inside } from './run.ts'

export interface CallHost {
  /** For the bodies of calls. */
  memory: Memory
  db: Database
  prices: Prices
  budgets: Budgets
  fetch: typeof fetch
  log(line: string): void
  observe: Observe
  traceparentOf(runId: string, callId: string): string | undefined
}

/** The model calls of one run. */
export interface RunCalls {
  readonly token: string
  readonly inside: Inside
  readonly provider: Provider
  /** Present once a budget has refused a call. */
  readonly refusal: BudgetRefusal | undefined
  /** Answers a call on one of the routes. Rejects when the caller has gone. */
  answer(request: Request, route: Route): Promise<Response>
  /** What calls have used since the last take; undefined when none has ended since. */
  takeUsage(): CallUsage | undefined
  /** Ends the calls upstream and refuses new ones. On return every call is counted. */
  close(): void
}

/** Calls of one run. Claude Code makes a handful at once. */
const MAX_CALLS_AT_ONCE = 32

const FULL = 'Other calls fill the memory that there is for them: try again.'
const tooLarge: Rejected = { status: 413, message: 'A call may have 32 MB.' }
const nothingReserved: Reservation = { release() {} }

export function createRunCalls(host: CallHost, run: GatewayRun, provider: Provider, modelId: string): RunCalls {
  const closed = new AbortController()
  const log = (line: string) => host.log(`${run.runId}: ${line}`)
  const recorder = createRecorder(host, run, { provider, modelId }, log)
  const calls = new Set<ModelCall>()
  let startingCount = 0
  let refusal: BudgetRefusal | undefined

  /** Sends a call upstream, and records it at its end. */
  function start(
    request: Request,
    route: Route,
    body: string | undefined,
    estimatedInputTokens: number,
    { release }: Reservation,
  ): Promise<Response> {
    const callId = newId('call')
    const startedAt = now()
    const startedAtMs = performance.now()
    const call = startModelCall({
      provider,
      route,
      url: upstreamUrl(provider, withModel(route, modelId), new URL(request.url).search),
      headers: request.headers,
      traceparent: host.traceparentOf(run.runId, callId),
      body,
      estimatedInputTokens,
      fetch: host.fetch,
      log,
      onEnd(outcome) {
        request.signal.removeEventListener('abort', abort)
        calls.delete(call)
        // The reservation is held until the cost is stored: no other call may slip through in between.
        const timed = { callId, wire: route.wire, startedAt, startedAtMs }
        if (route.metered) void recorder.record(outcome, timed).finally(release)
        else release()
      },
    })
    const abort = () => call.abort()
    calls.add(call)
    request.signal.addEventListener('abort', abort)
    return call.answer
  }

  async function send(request: Request, route: Route, call: Admitted | undefined): Promise<Response> {
    const inputTokens = call && route.metered ? estimateTokens(call.body) : 0
    const tokens = { inputTokens, outputTokens: call?.maxOutputTokens ?? 0, cacheReadTokens: 0, cacheWriteTokens: 0 }
    const mostUsd = route.metered ? host.prices.costUsd(provider, modelId, tokens) : 0
    const signal = AbortSignal.any([closed.signal, request.signal])
    const reserved = route.metered ? await host.budgets.reserve(run, run.budgets, mostUsd, signal) : nothingReserved
    if ('reason' in reserved) {
      refusal = reserved
      const text = explainRefusal(reserved)
      log(text)
      return errorResponse(route.wire, 402, text, 'budget_exceeded')
    }
    // No await between this and the start: the end of a run aborts only the calls that have started.
    if (signal.aborted) {
      reserved.release()
      throw signal.reason
    }
    return await start(request, route, call?.body, inputTokens, reserved)
  }

  return {
    token: secretPrefixes.run + randomBytes(32).toString('base64url'),
    inside: run.inside,
    provider,
    get refusal() {
      return refusal
    },
    async answer(request, route) {
      const ended = () => errorResponse(route.wire, 401, 'The run that this token was for has ended.')
      if (startingCount >= MAX_CALLS_AT_ONCE || calls.size >= MAX_CALLS_AT_ONCE) {
        return errorResponse(route.wire, 429, `A run may have ${MAX_CALLS_AT_ONCE} calls at once.`)
      }
      startingCount += 1
      using loan = host.memory.borrow(run.teamId)
      try {
        const call = await readCall(request, route, modelId, loan)
        if (call && 'message' in call) return errorResponse(route.wire, call.status, call.message)
        request.signal.throwIfAborted()
        return closed.signal.aborted ? ended() : await send(request, route, call)
      } catch (error) {
        request.signal.throwIfAborted()
        if (closed.signal.aborted) return ended()
        if (error instanceof ApiError && (error.status === 408 || error.status === 503))
          return errorResponse(route.wire, error.status, error.message)
        throw error
      } finally {
        startingCount -= 1
      }
    },
    takeUsage: () => recorder.takeUsage(),
    close() {
      closed.abort()
      for (const call of calls) call.abort()
    },
  }
}

/** Reads and checks a call's body; undefined for a GET. The loan counts its memory. */
async function readCall(
  request: Request,
  route: Route,
  modelId: string,
  loan: Loan,
): Promise<Admitted | Rejected | undefined> {
  if (route.method !== 'POST') return undefined
  const take = (bytes: number) => {
    if (!loan.grow(bytes)) throw new ApiError('server_busy', FULL)
  }
  const bytes = await readBody(request, MAX_BODY_BYTES, { take })
  return bytes ? admit(route, modelId, parseJson(bytes.toString('utf8'))) : tooLarge
}
