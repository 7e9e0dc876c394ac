import type { Database } from 'bun:sqlite'
import type { GroupBy, ModelCall, SpentScope, UsageGroup, UsageSums } from '../model/usage.ts'
import { inTransaction } from './open.ts'
import { readBeside } from './read-beside.ts'
import { roundUsd } from './usd.ts'

/** Stores a call that has ended. */
export const insertModelCall = (db: Database, id: string, call: ModelCall): void =>
  inTransaction(db, () => {
    db.query(
      `insert into model_calls
         (id, team_id, key_id, agent_slug, sandbox_id, thread_id, run_id, provider, model, status, input_tokens,
          output_tokens, cache_read_tokens, cache_write_tokens, cost_usd, started_at, duration_ms)
       values ($id, $teamId, $keyId, $agentSlug, $sandboxId, $threadId, $runId, $provider, $model, $status, $inputTokens,
          $outputTokens, $cacheReadTokens, $cacheWriteTokens, $costUsd, $startedAt, $durationMs)`,
    ).run({ keyId: null, ...call, id })
  })

/** What the ended calls of a scope cost, in USD. `from` is a moment as it is stored. */
export function spentUsd(db: Database, scope: SpentScope): number {
  const columns: Readonly<Record<string, string>> = {
    runId: 'run_id = $runId',
    replyId: 'run_id in (select id from runs where thread_id = $threadId and message_id = $replyId)',
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

const groupColumns: Readonly<Record<GroupBy, string>> = {
  agent: 'agent_slug',
  thread: 'thread_id',
  key: 'key_id',
  model: "provider || '/' || model",
  day: 'substr(started_at, 1, 10)',
}

/** The columns with a name for people. */
const nameColumns: Readonly<Partial<Record<GroupBy, string>>> = {
  thread: `, (select name from threads where threads.id = thread_id) as name,
    (select sandbox_id from threads where threads.id = thread_id) as sandboxId`,
  key: ', (select name from api_keys where api_keys.id = key_id) as name',
}

const sums = `count(*) as calls, coalesce(sum(input_tokens), 0) as inputTokens,
  coalesce(sum(output_tokens), 0) as outputTokens, coalesce(sum(cache_read_tokens), 0) as cacheReadTokens,
  coalesce(sum(cache_write_tokens), 0) as cacheWriteTokens, coalesce(sum(cost_usd), 0) as costUsd`

const withRoundedCost = <Row extends Pick<UsageSums, 'costUsd'>>(row: Row): Row => ({
  ...row,
  costUsd: roundUsd(row.costUsd),
})

/** A team's calls that began from `from` until before `to`, in groups by their key. */
export const usageBy = (
  db: Database,
  teamId: string,
  groupBy: GroupBy,
  { from = '', to = '~' }: { from?: string; to?: string } = {},
): UsageGroup[] =>
  db
    .query<UsageGroup, { teamId: string; from: string; to: string }>(
      `select ${groupColumns[groupBy]} as key, ${sums}${nameColumns[groupBy] ?? ''} from model_calls
       where team_id = $teamId and started_at >= $from and started_at < $to group by 1 order by 1`,
    )
    .all({ teamId, from, to })
    .map(withRoundedCost)

/** A sandbox or a thread, with what its calls have cost. */
export interface TopSpender {
  id: string
  /** The title of a thread; null for a sandbox. */
  name: string | null
  sandboxId: string
  costUsd: number
}

/**
 * The sandboxes of an agent, or the threads of a team, that have spent most and still exist. The query runs on another thread.
 */
export async function listTopSpenders(
  db: Database,
  kind: 'sandbox' | 'thread',
  { teamId, agentSlug = '', limit }: { teamId: string; agentSlug?: string; limit: number },
): Promise<TopSpender[]> {
  const table = kind === 'sandbox' ? 'sandboxes' : 'threads'
  const found = await readBeside<TopSpender>(
    db,
    `select ${table}.id, ${kind === 'thread' ? 'threads.name' : 'null'} as name, model_calls.sandbox_id as sandboxId,
       sum(cost_usd) as costUsd
     from model_calls join ${table} on ${table}.id = ${kind}_id
     where model_calls.team_id = $teamId and ($agentSlug = '' or model_calls.agent_slug = $agentSlug)
     group by ${table}.id order by costUsd desc limit $limit`,
    { teamId, agentSlug, limit },
  )
  return found.map(withRoundedCost)
}

/** What a run's calls used; undefined when it made none. */
export function usageOfRun(db: Database, runId: string): UsageSums | undefined {
  const row = db
    .query<UsageSums, { runId: string }>(`select ${sums} from model_calls where run_id = $runId`)
    .get({ runId })
  return row && row.calls > 0 ? withRoundedCost(row) : undefined
}
