import type { Database } from 'bun:sqlite'
import { createHmac, randomBytes } from 'node:crypto'
import { createMemory } from '../async/shared-memory.ts'
import { bounds } from '../bounds.ts'
import { ApiError } from '../errors.ts'
import type { ModelAccess } from '../plugin-api/index.ts'
import { createBudgets, type OperatorBudgets } from './budgets.ts'
import { tokenOf } from './headers.ts'
import type { Prices } from './prices.ts'
import { findModel, nameModel, type Provider } from './providers.ts'
import { refusal } from './refusal.ts'
import { findRoute, splitPath } from './routes.ts'
import { type CallUsage, createSession, type GatewayRun, type Inside, type Session } from './session.ts'

export interface GatewayOptions {
  db: Database
  providers: ReadonlyMap<string, Provider>
  prices: Prices
  /** Where processes in a sandbox have their way to `handle`; `public` only where the server has such an address. */
  origins: { relay: string; public?: string }
  budgets?: OperatorBudgets
  /** `provider/model`, for a run that names none. */
  defaultModel?: string
  /** Tokens that the default model's window takes. */
  defaultWindow?: number
  /** Says one line to the operator. Never a secret. */
  log(line: string): void
  /** In place of the network. */
  fetch?: typeof fetch
}

/** The only way out for model calls: it holds the keys, meters every call and enforces the budgets. */
export interface Gateway {
  readonly providers: ReadonlyMap<string, Provider>
  readonly defaultModel: string | undefined
  /** Lets a run call its model. Throws invalid_request when it has none, or the model's provider is not set up. */
  open(run: Omit<GatewayRun, 'model'> & { model?: string }): GatewaySession
  /**
   * Answers a request to `/gateway/PROVIDER/…` that shows a run's token. A token is good only where its run's processes
   * are: `from` an environment's relay, or the public URL; without it the request is the server's own. `onAdmitted` is
   * called when it was. Rejects only when the caller has gone.
   */
  handle(request: Request, from?: { environmentId: string } | 'public', onAdmitted?: () => void): Promise<Response>
}

export interface GatewaySession {
  /** What an engine may know: it is worth nothing once the session is closed. */
  access: ModelAccess
  /** The reason, once a budget has refused a call: fit to be shown. */
  readonly refusal: string | undefined
  /** What calls have used since the last take; undefined when none has ended. */
  takeUsage(): CallUsage | undefined
  /** Revokes the token and ends the calls upstream. Resolves when all calls are stored. Idempotent. */
  close(): Promise<void>
}

/** Nobody can dial it: in-process calls stay in the process. */
const IN_PROCESS_ORIGIN = 'http://gateway.invalid'

export function createGateway(options: GatewayOptions): Gateway {
  const { db, providers, prices, log, defaultModel, defaultWindow } = options
  const memory = createMemory({ bytes: bounds.modelCallsBytes, freeBytes: bounds.smallBodyBytes })
  const budgets = createBudgets(db, options.budgets ?? {})
  const host = { db, prices, log, memory, budgets, fetch: options.fetch ?? fetch }
  const sessions = new Map<string, Session>()
  const programSecret = randomBytes(32)
  /** Of a thread, for as long as this server runs. */
  const programTokenOf = (threadId: string) =>
    `tbp_${createHmac('sha256', programSecret).update(threadId).digest('base64url')}`

  const handle: Gateway['handle'] = async (request, from, onAdmitted) => {
    const { pathname } = new URL(request.url)
    const place = splitPath(pathname)
    if (!place) return refusal('openai-chat', 404, 'This is no path of the gateway.')
    // Clients ask whether anyone is there before they have a call to make.
    if (request.method === 'HEAD') return new Response(null)
    const token = tokenOf(request.headers) ?? ''
    const found = sessions.get(token)
    const session = found && comesFrom(found.inside, from) ? found : undefined
    const wire = session?.provider.wire ?? providers.get(place.provider)?.wire ?? 'openai-chat'
    const route = findRoute(session?.provider ?? { wire }, place.rest)
    if (!session) return refusal(route?.wire ?? wire, 401, 'The token is not known, or its run has ended.')
    onAdmitted?.()
    if (session.provider.name !== place.provider) {
      return refusal(route?.wire ?? wire, 403, `This run's provider is ${session.provider.name}.`)
    }
    if (route?.method !== request.method) {
      return refusal(route?.wire ?? wire, 403, `${request.method} ${place.rest} is not let through.`)
    }
    return await session.call(request, token === session.token ? route : { ...route, anyModel: true })
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
      const session = createSession(host, { ...run, model }, provider, id)
      const programToken = programTokenOf(run.threadId)
      sessions.set(session.token, session)
      sessions.set(programToken, session)
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
          token: session.token,
          programToken,
          fetch: inProcess,
          ...(contextTokens !== undefined && { contextTokens }),
        },
        get refusal() {
          return session.refusal
        },
        takeUsage: () => session.takeUsage(),
        async close() {
          sessions.delete(session.token)
          if (sessions.get(programToken) === session) sessions.delete(programToken)
          session.close()
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
