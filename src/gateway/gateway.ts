import type { Database } from 'bun:sqlite'
import { createHmac, randomBytes } from 'node:crypto'
import { createMemory } from '../async/shared-memory.ts'
import { bounds } from '../bounds.ts'
import { ApiError } from '../errors.ts'
import type { Observe } from '../model/observation.ts'
import { secretPrefixes } from '../model/prefixes.ts'
import type { ModelAccess } from '../plugin-api/index.ts'
import { type BudgetRefusal, createBudgets, type OperatorBudgets } from './budgets.ts'
import { errorResponse } from './error-response.ts'
import { readToken } from './headers.ts'
import type { Prices } from './prices.ts'
import { findModel, nameModel, type Provider } from './providers.ts'
import type { CallUsage } from './recorder.ts'
import { findRoute, splitPath } from './routes.ts'
import type { GatewayRun, Inside } from './run.ts'
import { type CallHost, createRunCalls, type RunCalls } from './run-calls.ts'

export interface GatewayOptions {
  db: Database
  providers: ReadonlyMap<string, Provider>
  prices: Prices
  /** Where processes in a sandbox reach `handle`; `public` only when the server has a public URL. */
  origins: { relay: string; public?: string }
  budgets?: OperatorBudgets
  /** `provider/model`, for a run that names none. */
  defaultModel?: string
  /** The default model's context window, in tokens. */
  defaultWindow?: number
  /** Says one line to the operator. Never a secret. */
  log(line: string): void
  /** Called with each call that has ended. */
  observe?: Observe
  /** The header `traceparent` of a call, for a provider of the operator's own. */
  traceparentOf?: CallHost['traceparentOf']
  /** Used in place of the network. */
  fetch?: typeof fetch
}

/** The only way out for model calls: it holds the keys, meters every call and enforces the budgets. */
export interface Gateway {
  readonly providers: ReadonlyMap<string, Provider>
  readonly defaultModel: string | undefined
  /** Lets a run call its model. Throws invalid_request when it has none, or the model's provider is not set up. */
  open(run: Omit<GatewayRun, 'model'> & { model?: string }): GatewaySession
  /**
   * Answers a request to `/gateway/PROVIDER/…` that shows a run's token. A token is valid only from where its run's
   * processes are: `from` names an environment's relay, or the public URL; without it the server itself asks. `onAdmitted`
   * is called when the token is valid. Rejects only when the caller has gone.
   */
  handle(request: Request, from?: { environmentId: string } | 'public', onAdmitted?: () => void): Promise<Response>
}

export interface GatewaySession {
  /** What an engine gets. Its tokens are worth nothing once the session is closed. */
  access: ModelAccess
  /** Present once a budget has refused a call. It may be shown to users. */
  readonly refusal: BudgetRefusal | undefined
  /** What calls have used since the last take; undefined when none has ended since. */
  takeUsage(): CallUsage | undefined
  /** Revokes the token and ends the calls upstream. Resolves when all calls are stored. Idempotent. */
  close(): Promise<void>
}

/** A host that nobody can dial: calls of the server itself do not leave the process. */
const IN_PROCESS_ORIGIN = 'http://gateway.invalid'

export function createGateway(options: GatewayOptions): Gateway {
  const { db, providers, prices, log, defaultModel, defaultWindow } = options
  const memory = createMemory({ bytes: bounds.modelCallsBytes, freeBytes: bounds.smallBodyBytes })
  const budgets = createBudgets(db, options.budgets ?? {})
  const { observe = () => {}, traceparentOf = () => undefined } = options
  const host = { db, prices, log, observe, traceparentOf, memory, budgets, fetch: options.fetch ?? fetch }
  const runsByToken = new Map<string, RunCalls>()
  const programSecret = randomBytes(32)
  /** The token of a thread's programs, the same for as long as this server runs. */
  const makeProgramToken = (threadId: string) =>
    secretPrefixes.program + createHmac('sha256', programSecret).update(threadId).digest('base64url')

  const handle: Gateway['handle'] = async (request, from, onAdmitted) => {
    const { pathname } = new URL(request.url)
    const path = splitPath(pathname)
    if (!path) return errorResponse('openai-chat', 404, 'There is no such path in the gateway.')
    // Clients check that the server is there before their first call.
    if (request.method === 'HEAD') return new Response(null)
    const token = readToken(request.headers) ?? ''
    const found = runsByToken.get(token)
    const calls = found && comesFrom(found.inside, from) ? found : undefined
    const wire = calls?.provider.wire ?? providers.get(path.provider)?.wire ?? 'openai-chat'
    const route = findRoute(calls?.provider ?? { wire }, path.rest)
    if (!calls) return errorResponse(route?.wire ?? wire, 401, 'The token is not known, or its run has ended.')
    onAdmitted?.()
    if (calls.provider.name !== path.provider) {
      return errorResponse(route?.wire ?? wire, 403, `This run's provider is ${calls.provider.name}.`)
    }
    if (route?.method !== request.method) {
      return errorResponse(route?.wire ?? wire, 403, `The gateway does not let ${request.method} ${path.rest} through.`)
    }
    return await calls.answer(request, token === calls.token ? route : { ...route, anyModel: true })
  }

  const inProcess = Object.assign(
    async (input: string | URL | Request, init?: RequestInit) =>
      await handle(input instanceof Request ? new Request(input, init) : new Request(String(input), init)),
    { preconnect: () => {} },
  )

  return {
    providers,
    defaultModel,
    handle,
    open({ model: asked = defaultModel, ...run }) {
      const model = nameModel(asked, defaultModel)
      const { provider, id } = findModel(providers, model)
      const calls = createRunCalls(host, { ...run, model }, provider, id)
      const programToken = makeProgramToken(run.threadId)
      runsByToken.set(calls.token, calls)
      runsByToken.set(programToken, calls)
      const path = `/gateway/${provider.name}/v1`
      const known = model === defaultModel ? defaultWindow : undefined
      const contextTokens = known ?? prices.contextTokens(provider, id)
      return {
        access: {
          provider: provider.name,
          wire: provider.wire,
          id,
          baseUrl: IN_PROCESS_ORIGIN + path,
          get insideBaseUrl() {
            return insideOrigin(options.origins, run.inside) + path
          },
          token: calls.token,
          programToken,
          fetch: inProcess,
          ...(contextTokens !== undefined && { contextTokens }),
        },
        get refusal() {
          return calls.refusal
        },
        takeUsage: () => calls.takeUsage(),
        async close() {
          runsByToken.delete(calls.token)
          if (runsByToken.get(programToken) === calls) runsByToken.delete(programToken)
          calls.close()
        },
      }
    },
  }
}

function comesFrom({ environmentId, via }: Inside, from: Parameters<Gateway['handle']>[1]): boolean {
  if (from === undefined) return true
  return from === 'public' ? via === 'public' : via === 'relay' && from.environmentId === environmentId
}

function insideOrigin(origins: GatewayOptions['origins'], { via }: Inside): string {
  const origin = origins[via]
  if (origin !== undefined) return origin
  throw new ApiError(
    'invalid_request',
    'Nothing in this sandbox reaches the model gateway: start the server with --public-url, where sandboxes of its backend reach it.',
  )
}
