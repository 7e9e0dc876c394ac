import type { Database } from 'bun:sqlite'
import type { WaitingReply } from '../model/waiting-reply.ts'
import { now } from './id.ts'
import { mustLast } from './lasting.ts'

type Row = Omit<WaitingReply, 'request'> & { request: string }
type Key = Pick<WaitingReply, 'threadId' | 'messageId'>

const select = `select w.thread_id as threadId, w.message_id as messageId, t.sandbox_id as sandboxId, s.team_id as teamId,
  w.request from waiting_replies w join threads t on t.id = w.thread_id join sandboxes s on s.id = t.sandbox_id`

const toReply = (row: Row): WaitingReply => ({ ...row, request: JSON.parse(row.request) })

/** Stores that a reply waits. The request of its last run counts. Throws when the thread is gone. */
export function saveWaitingReply(db: Database, { threadId, messageId }: Key, request: unknown): void {
  db.query(
    `insert into waiting_replies (thread_id, message_id, request) values ($threadId, $messageId, $request)
     on conflict do update set request = excluded.request, tries = 0`,
  ).run({ threadId, messageId, request: JSON.stringify(request) })
}

/** Counts a run that is to go on with a reply. Returns how many there were since the last that got anywhere. */
export const countTry = (db: Database, { threadId, messageId }: Key): number =>
  db
    .query<{ tries: number }, Key>(
      `update waiting_replies set tries = tries + 1 where thread_id = $threadId and message_id = $messageId
       returning tries`,
    )
    .get({ threadId, messageId })?.tries ?? 0

/** Notes that a run has got somewhere with a reply. */
export function forgetTries(db: Database, { threadId, messageId }: Key): void {
  db.query('update waiting_replies set tries = 0 where thread_id = $threadId and message_id = $messageId').run({
    threadId,
    messageId,
  })
}

export function findWaitingReply(db: Database, { threadId, messageId }: Key): WaitingReply | undefined {
  const row = db
    .query<Row, Key>(`${select} where w.thread_id = $threadId and w.message_id = $messageId`)
    .get({ threadId, messageId })
  return row ? toReply(row) : undefined
}

/** The thread's replies that wait, oldest first. */
export const listWaitingReplies = (db: Database, threadId: string): WaitingReply[] =>
  db
    .query<Row, { threadId: string }>(`${select} where w.thread_id = $threadId order by w.message_id`)
    .all({ threadId })
    .map(toReply)

const isOpen = `exists (select 1 from approvals a
    where a.thread_id = w.thread_id and a.message_id = w.message_id and a.status = 'pending')
  or exists (select 1 from client_calls c
    where c.thread_id = w.thread_id and c.message_id = w.message_id and c.status = 'pending')`

/** True while a call of the reply waits for an answer. */
export const hasOpenCalls = (db: Database, key: Key): boolean =>
  db
    .query<{ isOpen: number }, Key>(
      `select ${isOpen} as isOpen from (select $threadId as thread_id, $messageId as message_id) w`,
    )
    .get({ threadId: key.threadId, messageId: key.messageId })?.isOpen === 1

/** The replies that wait for no answer any more, oldest first: of one thread, or of all. */
export const listDueReplies = (db: Database, threadId?: string): WaitingReply[] =>
  db
    .query<Row, { threadId: string | null }>(
      `${select}
       where ($threadId is null or w.thread_id = $threadId) and not (${isOpen}) order by w.message_id`,
    )
    .all({ threadId: threadId ?? null })
    .map(toReply)

/** Notes that the agent was given the refusals, the outputs and the raised budgets of a reply's calls. */
export function useAnswers(db: Database, { threadId, messageId }: Key): void {
  const values = { threadId, messageId, now: now() }
  db.query(
    `update approvals set used_at = $now where thread_id = $threadId and message_id = $messageId and used_at is null
       and (status in ('denied', 'expired', 'cancelled') or (kind = 'budget' and status = 'approved'))`,
  ).run(values)
  db.query(
    `update client_calls set used_at = $now, answer = null where thread_id = $threadId and message_id = $messageId
       and used_at is null and status <> 'pending'`,
  ).run(values)
}

/** Ends the waiting of a reply: what nobody has answered is cancelled, and no answer has an effect any more. */
export function settleReply(db: Database, { threadId, messageId }: Key): void {
  const values = { threadId, messageId, now: now() }
  db.query(
    `update approvals set status = iif(status = 'pending', 'cancelled', status), used_at = coalesce(used_at, $now)
     where thread_id = $threadId and message_id = $messageId and (status = 'pending' or used_at is null)`,
  ).run(values)
  db.query(
    `update client_calls set status = iif(status = 'pending', 'cancelled', status), used_at = coalesce(used_at, $now),
       answer = null
     where thread_id = $threadId and message_id = $messageId and (status = 'pending' or used_at is null)`,
  ).run(values)
  if (removeWaitingReply(db, threadId, messageId)) mustLast(db)
}

const removeWaitingReply = (db: Database, threadId: string, messageId: string): boolean =>
  db
    .query('delete from waiting_replies where thread_id = $threadId and message_id = $messageId')
    .run({ threadId, messageId }).changes > 0

/** Nobody need answer this call any more. */
export function withdrawCall(db: Database, { threadId, messageId, toolCallId }: Key & { toolCallId: string }): void {
  for (const table of ['approvals', 'client_calls'])
    db.query(
      `update ${table} set status = 'cancelled', used_at = $now where thread_id = $threadId and message_id = $messageId
         and tool_call_id = $toolCallId and status = 'pending'`,
    ).run({ threadId, messageId, toolCallId, now: now() })
}
