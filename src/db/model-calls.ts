import type { Database } from 'bun:sqlite'
import { newId } from './id.ts'
import { inTransaction } from './open.ts'
import { roundUsd } from './usd.ts'

/** Whom a model's call is for. */
export interface Spender {
  teamId: string
  /** The API key that asked; undefined for the configured one and for tokens. */
  keyId?: string
  agentSlug: string
  sandboxId: string
  threadId: string
  runId: string
}

/** One call of a model, once it has ended. */
export interface ModelCall extends Spender {
  provider: string
  /** The model's id at the provider. */
  model: string
  /** `aborted`: the caller went, or the run ended, before the answer was whole. */
  status: 'completed' | 'failed' | 'aborted'
  /** Those of the cache are among them. */
  inputTokens: number
  outputTokens: number
  cacheReadTokens: number
  cacheWriteTokens: number
  costUsd: number
  startedAt: string
  durationMs: number
}

/** Stores a call that has ended. */
export const insertModelCall = (db: Database, call: ModelCall): void =>
  inTransaction(db, () => {
    db.query(
      `insert into model_calls
         (id, team_id, key_id, agent_slug, sandbox_id, thread_id, run_id, provider, model, status, input_tokens,
          output_tokens, cache_read_tokens, cache_write_tokens, cost_usd, started_at, duration_ms)
       values ($id, $teamId, $keyId, $agentSlug, $sandboxId, $threadId, $runId, $provider, $model, $status, $inputTokens,
          $outputTokens, $cacheReadTokens, $cacheWriteTokens, $costUsd, $startedAt, $durationMs)`,
    ).run({ keyId: null, ...call, id: newId('call') })
  })

/** Whose calls a budget is about. */
export type SpentScope =
  | { runId: string }
  | { threadId: string }
  | { sandboxId: string }
  | { teamId: string; agentSlug: string }
  /** Calls without a key of the database are one of their own in each team. */
  | { teamId: string; keyId: string | null; from: string }
  | { from: string }

/** What the ended calls of a scope cost, in USD. `from` is a moment as it is stored. */
export function spentUsd(db: Database, scope: SpentScope): number {
  const columns: Readonly<Record<string, string>> = {
    runId: 'run_id = $runId',
    threadId: 'thread_id = $threadId',
    sandboxId: 'sandbox_id = $sandboxId',
    teamId: 'team_id = $teamId',
    agentSlug: 'agent_slug = $agentSlug',
    keyId: 'key_id is $keyId',
    from: 'started_at >= $from',
  }
  const where = Object.keys(scope).map(name => columns[name])
  const row = db
    .query<{ usd: number | null }, Record<string, string | null>>(
      `select sum(cost_usd) as usd from model_calls where ${where.join(' and ')}`,
    )
    .get({ ...scope })
  return roundUsd(row?.usd ?? 0)
}

export interface UsageSums {
  calls: number
  inputTokens: number
  outputTokens: number
  cacheReadTokens: number
  cacheWriteTokens: number
  costUsd: number
}

export interface UsageGroup extends UsageSums {
  /** An agent's slug, a thread's or key's id, `provider/model`, or a day (UTC); null for calls without a key of the database. */
  key: string | null
}

export const usageGroups = ['agent', 'thread', 'key', 'model', 'day'] as const
export type GroupBy = (typeof usageGroups)[number]

const groupColumns: Readonly<Record<GroupBy, string>> = {
  agent: 'agent_slug',
  thread: 'thread_id',
  key: 'key_id',
  model: "provider || '/' || model",
  day: 'substr(started_at, 1, 10)',
}

const sums = `count(*) as calls, coalesce(sum(input_tokens), 0) as inputTokens,
  coalesce(sum(output_tokens), 0) as outputTokens, coalesce(sum(cache_read_tokens), 0) as cacheReadTokens,
  coalesce(sum(cache_write_tokens), 0) as cacheWriteTokens, coalesce(sum(cost_usd), 0) as costUsd`

const exact = <Sums extends UsageSums>(row: Sums): Sums => ({ ...row, costUsd: roundUsd(row.costUsd) })

/** A team's calls that began from `from` until before `to`, in groups by their key. */
export const usageBy = (
  db: Database,
  teamId: string,
  groupBy: GroupBy,
  { from = '', to = '~' }: { from?: string; to?: string } = {},
): UsageGroup[] =>
  db
    .query<UsageGroup, { teamId: string; from: string; to: string }>(
      `select ${groupColumns[groupBy]} as key, ${sums} from model_calls
       where team_id = $teamId and started_at >= $from and started_at < $to group by 1 order by 1`,
    )
    .all({ teamId, from, to })
    .map(exact)

/** What a run's calls used; undefined when it made none. */
export function usageOfRun(db: Database, runId: string): UsageSums | undefined {
  const row = db
    .query<UsageSums, { runId: string }>(`select ${sums} from model_calls where run_id = $runId`)
    .get({ runId })
  return row && row.calls > 0 ? exact(row) : undefined
}
