import type { Database } from 'bun:sqlite'
import { randomBytes } from 'node:crypto'
import type { Memory } from '../async/shared-memory.ts'
import { writeWhenFree } from '../db/busy.ts'
import { now } from '../db/id.ts'
import { insertModelCall, type Spender } from '../db/model-calls.ts'
import { roundUsd } from '../db/usd.ts'
import { ApiError, messageOf } from '../errors.ts'
import { secretPrefixes } from '../model/prefixes.ts'
import type { EngineEvent } from '../plugin-api/index.ts'
import { readBody } from '../read/bytes.ts'
import { parseJson } from '../read/json.ts'
import type { Budgets, RunBudgets } from './budgets.ts'
import { type Call, type Outcome, startCall } from './call.ts'
import { estimateTokens } from './meter.ts'
import type { Prices } from './prices.ts'
import type { Provider } from './providers.ts'
import { refusal } from './refusal.ts'
import { type Admitted, admit, MAX_BODY_BYTES } from './request.ts'
import { type Route, upstreamUrl, withModel } from './routes.ts'

/** Whom a run's calls are for, and what they may be. */
export interface GatewayRun extends Spender {
  /** `provider/model`. */
  model: string
  budgets: RunBudgets
  inside: Inside
}

/** Whose processes may use a run's token, and the way that they come. The server itself always may. */
export interface Inside {
  environmentId: string
  /** `relay`: the proxy's own address in that environment. `public`: this server's public URL. */
  via: 'relay' | 'public'
}

/** What calls used, as a run takes it. */
export type CallUsage = Omit<Extract<EngineEvent, { type: 'usage' }>, 'type'>

export interface SessionHost {
  /** For the bodies of calls. */
  memory: Memory
  db: Database
  prices: Prices
  budgets: Budgets
  fetch: typeof fetch
  log(line: string): void
}

/** A run's way through the gateway. */
export interface Session {
  readonly token: string
  readonly inside: Inside
  readonly provider: Provider
  /** The reason, once a budget has refused a call. */
  readonly refusal: string | undefined
  /** Answers a call on one of the routes. Rejects when the caller has gone. */
  call(request: Request, route: Route): Promise<Response>
  /** What calls have used since the last take; undefined when none has ended. */
  takeUsage(): CallUsage | undefined
  /** Ends the calls upstream and refuses new ones. On return every call is stored. */
  close(): void
}

/** Of one run. Claude Code asks for a handful at once. */
const MAX_CALLS_AT_ONCE = 32

export function createSession(host: SessionHost, run: GatewayRun, provider: Provider, modelId: string): Session {
  const { db, prices, budgets } = host
  const closed = new AbortController()
  const calls = new Set<Call>()
  let startingCount = 0
  let refused: string | undefined
  let pending: CallUsage | undefined
  const log = (line: string) => host.log(`${run.runId}: ${line}`)

  /** Counted at once; stored as soon as the database takes it. */
  async function record({ status, usage }: Outcome, startedAt: string, durationMs: number): Promise<void> {
    const { budgets: _, inside: __, model, ...spender } = run
    const costUsd = prices.costUsd(provider, modelId, usage)
    pending = {
      model,
      inputTokens: (pending?.inputTokens ?? 0) + usage.inputTokens,
      outputTokens: (pending?.outputTokens ?? 0) + usage.outputTokens,
      costUsd: roundUsd((pending?.costUsd ?? 0) + costUsd),
    }
    try {
      const call = { ...spender, provider: provider.name, model: modelId, status, costUsd, startedAt, durationMs }
      await writeWhenFree(db, () => insertModelCall(db, { ...call, ...usage }))
    } catch (error) {
      log(`a model call could not be stored: ${messageOf(error)}`)
    }
  }

  async function send(request: Request, route: Route, admitted: Admitted | undefined): Promise<Response> {
    const body = admitted?.body
    const estimatedInputTokens = body && route.metered ? estimateTokens(body) : 0
    let release = () => {}
    if (route.metered) {
      const most = { inputTokens: estimatedInputTokens, outputTokens: admitted?.maxOutputTokens ?? 0 }
      const mostUsd = prices.costUsd(provider, modelId, { ...most, cacheReadTokens: 0, cacheWriteTokens: 0 })
      const signal = AbortSignal.any([closed.signal, request.signal])
      const reserved = await budgets.reserve(run, run.budgets, mostUsd, signal)
      if ('reason' in reserved) {
        refused = `budget_exceeded: ${reserved.reason}`
        log(refused)
        return refusal(route.wire, 402, refused, 'budget_exceeded')
      }
      release = reserved.release
      if (signal.aborted) {
        release()
        throw signal.reason
      }
    }
    const startedAt = now()
    const startedAtMs = performance.now()
    const call = startCall({
      provider,
      route,
      url: upstreamUrl(provider, withModel(route, modelId), new URL(request.url).search),
      headers: request.headers,
      body,
      estimatedInputTokens,
      fetch: host.fetch,
      log,
      onEnd(outcome) {
        request.signal.removeEventListener('abort', abort)
        calls.delete(call)
        // What it costs is held until it is stored: no other call may be let through in between.
        if (route.metered) void record(outcome, startedAt, Math.round(performance.now() - startedAtMs)).finally(release)
        else release()
      },
    })
    const abort = () => call.abort()
    calls.add(call)
    request.signal.addEventListener('abort', abort)
    return await call.answer
  }

  return {
    token: secretPrefixes.run + randomBytes(32).toString('base64url'),
    inside: run.inside,
    provider,
    get refusal() {
      return refused
    },
    async call(request, route) {
      const ended = () => refusal(route.wire, 401, 'The run that this token was for has ended.')
      if (startingCount >= MAX_CALLS_AT_ONCE || calls.size >= MAX_CALLS_AT_ONCE) {
        return refusal(route.wire, 429, `A run may have ${MAX_CALLS_AT_ONCE} calls at once.`)
      }
      startingCount += 1
      using loan = host.memory.borrow(run.teamId)
      try {
        let admitted: Admitted | undefined
        if (route.method === 'POST') {
          const take = (bytes: number) => {
            if (!loan.grow(bytes)) throw new ApiError('server_busy', full)
          }
          const bytes = await readBody(request, MAX_BODY_BYTES, { take })
          const checked = bytes ? admit(route, modelId, parseJson(bytes.toString('utf8'))) : tooLarge
          if ('message' in checked) return refusal(route.wire, checked.status, checked.message)
          admitted = checked
        }
        request.signal.throwIfAborted()
        return closed.signal.aborted ? ended() : await send(request, route, admitted)
      } catch (error) {
        request.signal.throwIfAborted()
        if (closed.signal.aborted) return ended()
        if (error instanceof ApiError && (error.status === 408 || error.status === 503))
          return refusal(route.wire, error.status, error.message)
        throw error
      } finally {
        startingCount -= 1
      }
    },
    takeUsage() {
      const usage = pending
      pending = undefined
      return usage
    },
    close() {
      closed.abort()
      for (const call of calls) call.abort()
    },
  }
}

const full = 'Other calls fill the memory that there is for them: try again.'
const tooLarge = { status: 413, message: 'A call may have 32 MB.' } as const
