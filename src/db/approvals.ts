import type { Database } from 'bun:sqlite'
import type { Approval, ApprovalInput, ApprovalPage, Decision } from '../model/approval.ts'
import { now } from './id.ts'
import { mustLast } from './lasting.ts'

type Row = Omit<Approval, 'input'> & { input: string }

const columns = `a.id, a.team_id as teamId, a.agent_slug as agentSlug, a.sandbox_id as sandboxId, a.thread_id as threadId,
  a.run_id as runId, a.message_id as messageId, a.tool_call_id as toolCallId, a.kind, a.tool, a.input, a.reason, a.status,
  a.answer_reason as answerReason, a.answered_by as answeredBy, a.remember, a.created_at as createdAt,
  a.expires_at as expiresAt, a.answered_at as answeredAt, a.used_at as usedAt`

const toApproval = (row: Row): Approval => ({ ...row, input: JSON.parse(row.input) })

/** Throws when the run is gone. */
export function insertApproval(db: Database, { input, ...approval }: ApprovalInput): void {
  mustLast(db)
  db.query(
    `insert into approvals (id, team_id, agent_slug, sandbox_id, thread_id, run_id, message_id, tool_call_id, kind, tool,
       input, reason, status, created_at, expires_at)
     values ($id, $teamId, $agentSlug, $sandboxId, $threadId, $runId, $messageId, $toolCallId, $kind, $tool,
       $input, $reason, 'pending', $now, $expiresAt)`,
  ).run({ reason: null, ...approval, input: JSON.stringify(input), now: now() })
}

export function findApproval(db: Database, teamId: string, id: string): Approval | undefined {
  const row = db
    .query<Row, { teamId: string; id: string }>(
      `select ${columns} from approvals a where a.team_id = $teamId and a.id = $id`,
    )
    .get({ teamId, id })
  return row ? toApproval(row) : undefined
}

/** A team's approvals, newest first. */
export const listApprovals = (db: Database, teamId: string, page: ApprovalPage): Approval[] =>
  db
    .query<Row, Record<string, string | number | null>>(
      `select ${columns} from approvals a join threads t on t.id = a.thread_id join sandboxes s on s.id = a.sandbox_id
       where a.team_id = $teamId and ($before is null or a.id < $before) and ($status is null or a.status = $status)
         and ($sandboxId is null or a.sandbox_id = $sandboxId or s.environment_id = $sandboxId)
         and ($threadId is null or a.thread_id = $threadId)
         and ($userId is null or (t.external_user_id = $userId and s.external_user_id = $userId))
         and ($agents is null or s.agent_slug in (select value from json_each($agents)))
       order by a.id desc limit $limit`,
    )
    .all({
      teamId,
      limit: page.limit,
      before: page.before ?? null,
      status: page.status ?? null,
      sandboxId: page.sandboxId ?? null,
      threadId: page.threadId ?? null,
      userId: page.userId ?? null,
      agents: page.agents ? JSON.stringify(page.agents) : null,
    })
    .map(toApproval)

/** Those of one reply, in the order of the calls. */
export const listApprovalsOf = (db: Database, threadId: string, messageId: string): Approval[] =>
  db
    .query<Row, { threadId: string; messageId: string }>(
      `select ${columns} from approvals a where a.thread_id = $threadId and a.message_id = $messageId order by a.id`,
    )
    .all({ threadId, messageId })
    .map(toApproval)

/** Those that nobody has answered in time. */
export const listOverdueApprovals = (db: Database, moment: string): Approval[] =>
  db
    .query<Row, { moment: string }>(
      `select ${columns} from approvals a where a.status = 'pending' and a.expires_at <= $moment order by a.id`,
    )
    .all({ moment })
    .map(toApproval)

/** Stores the decision on a pending approval. False when it has one already. */
export function decideApproval(db: Database, id: string, { status, ...decision }: Decision): boolean {
  mustLast(db)
  return (
    db
      .query(
        `update approvals set status = $status, answer_reason = $reason, answered_by = $answeredBy, remember = $remember,
           answered_at = $now where id = $id and status = 'pending'`,
      )
      .run({ reason: null, answeredBy: null, remember: null, ...decision, id, status, now: now() }).changes > 0
  )
}

/** Notes that a decision has had its effect. */
export function useApproval(db: Database, id: string): void {
  db.query('update approvals set used_at = $now where id = $id and used_at is null').run({ id, now: now() })
}

/** What people have approved for a budget of a reply, of a sandbox, or of an agent in all its sandboxes, in USD. */
export const sumRaises = (
  db: Database,
  budget: string,
  of: { teamId: string; sandboxId?: string; agentSlug?: string; messageId?: string },
): number =>
  db
    .query<{ usd: number }, Record<string, string | null>>(
      `select coalesce(sum(json_extract(input, '$.moreUsd')), 0) as usd from approvals
       where kind = 'budget' and status = 'approved' and team_id = $teamId and json_extract(input, '$.budget') = $budget
         and ($sandboxId is null or sandbox_id = $sandboxId) and ($agentSlug is null or agent_slug = $agentSlug)
         and ($messageId is null or message_id = $messageId)`,
    )
    .get({ budget, sandboxId: null, agentSlug: null, messageId: null, ...of })?.usd ?? 0
