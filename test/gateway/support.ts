import type { Database } from 'bun:sqlite'
import { ensureTeam } from '../../src/db/teams.ts'
import type { OperatorBudgets } from '../../src/gateway/budgets.ts'
import { createGateway, type Gateway, type GatewaySession } from '../../src/gateway/gateway.ts'
import { createPrices } from '../../src/gateway/prices.ts'
import { readProviders } from '../../src/gateway/providers.ts'
import type { GatewayRun } from '../../src/gateway/run.ts'
import type { PriceTable } from '../../src/gateway/settings.ts'
import type { ModelCall } from '../../src/model/usage.ts'
import { cleanUpLater, openTemporary } from '../runs/support.ts'
import { startUpstream, type Upstream } from './upstream.ts'

export const REAL_KEY = 'sk-real-0123456789abcdef'

/** One USD a token of output, nothing for input: budgets in tests are small whole numbers. */
export const DOLLAR_A_TOKEN: PriceTable = { 'claude-sonnet-4-6': { input: 0, output: 1e6 } }

export interface GatewayScene {
  db: Database
  gateway: Gateway
  upstream: Upstream
  log: string[]
  open(run?: Partial<GatewayRun>): GatewaySession
  calls(): ModelCall[]
}

/** Providers of every wire, all of them the fake upstream, with one real key. */
export function gatewayScene(
  options: { prices?: PriceTable; budgets?: OperatorBudgets; fetch?: typeof fetch } = {},
): GatewayScene {
  const db = openTemporary()
  const upstream = startUpstream()
  cleanUpLater(upstream.stop)
  const log: string[] = []
  const say = (line: string) => void log.push(line)
  const providers = readProviders(
    {
      model: 'local/qwen3:8b',
      modelUrl: `${upstream.url}/v1`,
      modelKey: REAL_KEY,
      providers: {},
    },
    {
      ANTHROPIC_API_KEY: REAL_KEY,
      ANTHROPIC_BASE_URL: upstream.url,
      OPENAI_API_KEY: REAL_KEY,
      OPENAI_BASE_URL: `${upstream.url}/v1`,
      GEMINI_API_KEY: REAL_KEY,
      GEMINI_BASE_URL: `${upstream.url}/v1beta/openai`,
    },
  )
  const { budgets, fetch } = options
  const gateway = createGateway({
    db,
    providers,
    log: say,
    prices: createPrices(options.prices ?? {}, say),
    origins: { relay: 'http://127.0.0.1:3128' },
    ...(budgets && { budgets }),
    ...(fetch && { fetch }),
  })
  const teamId = ensureTeam(db, 'team').id
  return {
    db,
    gateway,
    upstream,
    log,
    open: run =>
      gateway.open({
        teamId,
        agentSlug: 'coder',
        sandboxId: 'sbx_1',
        threadId: 'thr_1',
        runId: 'run_1',
        inside: { environmentId: 'env_1', via: 'relay' },
        model: 'anthropic/claude-sonnet-4-6',
        budgets: {},
        ...run,
      }),
    calls: () =>
      db
        .query(
          `select provider, model, status, input_tokens as inputTokens, output_tokens as outputTokens,
             cache_read_tokens as cacheReadTokens, cache_write_tokens as cacheWriteTokens, cost_usd as costUsd,
             run_id as runId from model_calls order by id`,
        )
        .all() as ModelCall[],
  }
}

export interface WireCase {
  wire: string
  model: string
  /** After the access's base URL. */
  path: string
  streamPath?: string
  body(text: string): object
}

const messages = (text: string) => [{ role: 'user', content: text }]

/** How each wire asks. */
export const wireCases: WireCase[] = [
  {
    wire: 'anthropic',
    model: 'anthropic/claude-sonnet-4-6',
    path: '/messages',
    body: text => ({ model: 'claude-sonnet-4-6', max_tokens: 100, messages: messages(text) }),
  },
  {
    wire: 'openai-chat',
    model: 'local/qwen3:8b',
    path: '/chat/completions',
    body: text => ({ model: 'qwen3:8b', messages: messages(text) }),
  },
  {
    wire: 'openai-responses',
    model: 'openai/gpt-5.2',
    path: '/responses',
    body: text => ({ model: 'gpt-5.2', input: messages(text) }),
  },
  {
    wire: 'gemini',
    model: 'gemini/gemini-2.5-flash',
    path: '/models/gemini-2.5-flash:generateContent',
    streamPath: '/models/gemini-2.5-flash:streamGenerateContent?alt=sse',
    body: text => ({ contents: [{ role: 'user', parts: [{ text }] }] }),
  },
]

/** One call, as a client of the wire makes it. */
export function call(
  { access }: GatewaySession,
  { path, streamPath = path, body }: WireCase,
  text: string,
  { stream = true, ...init }: RequestInit & { stream?: boolean } = {},
): Promise<Response> {
  return access.fetch(access.baseUrl + (stream ? streamPath : path), {
    method: 'POST',
    headers: { 'x-api-key': access.token, 'content-type': 'application/json' },
    body: JSON.stringify({ ...body(text), ...(stream && path === streamPath && { stream: true }) }),
    ...init,
  })
}
