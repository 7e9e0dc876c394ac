import type { Database } from 'bun:sqlite'
import type { ClientAnswer, ClientCall, ClientCallInput } from '../model/client-call.ts'
import { now } from './id.ts'
import { mustLast } from './lasting.ts'

type Row = Omit<ClientCall, 'input' | 'answer'> & { input: string; answer: string | null }

const columns = `thread_id as threadId, message_id as messageId, tool_call_id as toolCallId, run_id as runId, tool, input,
  status, answer, created_at as createdAt, expires_at as expiresAt, used_at as usedAt`

const toCall = ({ answer, ...row }: Row): ClientCall => ({
  ...row,
  input: JSON.parse(row.input),
  ...(answer !== null && { answer: JSON.parse(answer) }),
})

/** Throws when the run is gone. */
export function insertClientCall(db: Database, { input, ...call }: ClientCallInput): void {
  mustLast(db)
  db.query(
    `insert into client_calls (thread_id, message_id, tool_call_id, run_id, tool, input, status, created_at, expires_at)
     values ($threadId, $messageId, $toolCallId, $runId, $tool, $input, 'pending', $now, $expiresAt)`,
  ).run({ ...call, input: JSON.stringify(input), now: now() })
}

/** Finds a call of a thread, whose calls have ids of their own. */
export function findClientCall(db: Database, threadId: string, toolCallId: string): ClientCall | undefined {
  const row = db
    .query<Row, { threadId: string; toolCallId: string }>(
      `select ${columns} from client_calls where thread_id = $threadId and tool_call_id = $toolCallId
       order by created_at desc limit 1`,
    )
    .get({ threadId, toolCallId })
  return row ? toCall(row) : undefined
}

/** Those of one reply, in the order of the calls. */
export const listClientCallsOf = (db: Database, threadId: string, messageId: string): ClientCall[] =>
  db
    .query<Row, { threadId: string; messageId: string }>(
      `select ${columns} from client_calls where thread_id = $threadId and message_id = $messageId
       order by created_at, rowid`,
    )
    .all({ threadId, messageId })
    .map(toCall)

/** Those that no client has answered in time. */
export const listOverdueClientCalls = (db: Database, moment: string): ClientCall[] =>
  db
    .query<Row, { moment: string }>(
      `select ${columns} from client_calls where status = 'pending' and expires_at <= $moment order by created_at`,
    )
    .all({ moment })
    .map(toCall)

/** Stores the answer to a pending call. False when it has one already. */
export function answerClientCall(
  db: Database,
  { threadId, messageId, toolCallId }: Pick<ClientCall, 'threadId' | 'messageId' | 'toolCallId'>,
  status: Exclude<ClientCall['status'], 'pending'>,
  answer: ClientAnswer,
): boolean {
  mustLast(db)
  return (
    db
      .query(
        `update client_calls set status = $status, answer = $answer, answered_at = $now
         where thread_id = $threadId and message_id = $messageId and tool_call_id = $toolCallId and status = 'pending'`,
      )
      .run({ threadId, messageId, toolCallId, status, answer: JSON.stringify(answer), now: now() }).changes > 0
  )
}

/** Ends the waiting for a client's answers to the calls of one reply. */
export function cancelClientCalls(
  db: Database,
  { threadId, messageId }: Pick<ClientCall, 'threadId' | 'messageId'>,
): void {
  db.query(
    `update client_calls set status = 'cancelled', used_at = $now
     where thread_id = $threadId and message_id = $messageId and status = 'pending'`,
  ).run({ threadId, messageId, now: now() })
}
