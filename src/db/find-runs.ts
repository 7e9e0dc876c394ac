import type { Database } from 'bun:sqlite'
import type { FoundRun, RunFilter, ToolCall } from '../model/found-run.ts'
import { readBeside } from './read-beside.ts'

const columns = `runs.id, runs.thread_id as threadId, runs.sandbox_id as sandboxId, message_id as messageId, runs.status, model,
  input_tokens as inputTokens, output_tokens as outputTokens, cost_usd as costUsd, runs.error, started_at as startedAt,
  ended_at as endedAt, duration_ms as durationMs`

const conditions: Readonly<Record<string, string>> = {
  teamId: 'runs.list_team_id = $teamId',
  before: 'runs.id < $before',
  id: 'runs.id = $id',
  threadId: 'runs.thread_id = $threadId',
  sandboxId: 'runs.sandbox_id = $sandboxId',
  status: 'runs.status = $status',
  agents: 'sandboxes.agent_slug in (select value from json_each($agents))',
  userId: 'threads.external_user_id = $userId and sandboxes.external_user_id = $userId',
}

/** A page of the runs that pass the filter, newest first. Reads beside the event loop: some filters have no index. */
export function findRuns(db: Database, { agents, limit, ...filter }: RunFilter): Promise<FoundRun[]> {
  const values = { ...filter, ...(agents && { agents: JSON.stringify(agents) }) }
  const where = Object.keys(values).map(name => conditions[name])
  return readBeside<FoundRun>(
    db,
    `select ${columns} from runs cross join threads on threads.id = runs.thread_id
       cross join sandboxes on sandboxes.id = runs.sandbox_id
     where ${where.join(' and ')} order by runs.id desc limit $limit`,
    { ...values, limit },
  )
}

/** The tools that a run's reply has called, by its log. A call's last chunk tells its state. */
export const listLoggedCalls = (db: Database, runId: string): Promise<ToolCall[]> =>
  readBeside<ToolCall>(
    db,
    `with calls as (
       select seq, chunk ->> '$.toolCallId' as callId, chunk ->> '$.toolName' as name, chunk ->> '$.type' as type
       from run_chunks where run_id = $runId and chunk glob '{"type":"tool-*' and not chunk glob '{"type":"tool-input-delta*'
     )
     select callId, max(name) as name, (
       select case last.type
         when 'tool-input-start' then 'input-streaming'
         when 'tool-approval-request' then 'approval-requested'
         when 'tool-approval-response' then 'approval-responded'
         else substr(last.type, 6) end
       from calls as last where last.callId = calls.callId order by seq desc limit 1
     ) as state
     from calls group by callId order by min(seq)`,
    { runId },
  )

/** The tools that a reply has called, in order, also of one that was moved to a branch. */
export const listCallsOfMessage = (
  db: Database,
  { threadId, messageId, runId }: { threadId: string; messageId: string | null; runId: string },
): Promise<ToolCall[]> =>
  readBeside<ToolCall>(
    db,
    `with replies as (
       select id, run_id, role, position, parts from messages where thread_id = $threadId
       union all
       select branch_messages.id, run_id, role, position, parts
       from branch_messages join branches on branches.id = branch_id where thread_id = $threadId
     )
     select value ->> '$.toolCallId' as callId, coalesce(value ->> '$.toolName', substr(value ->> '$.type', 6)) as name,
       value ->> '$.state' as state
     from replies, json_each(parts)
     where (replies.id = $messageId or run_id = $runId) and role = 'assistant'
       and json_each.type = 'object' and value ->> '$.toolCallId' is not null
     order by position, json_each.id`,
    { threadId, messageId: messageId ?? '', runId },
  )
