import type { Database } from 'bun:sqlite'
import type { StoredMessage } from '../plugin.ts'
import { newId, now } from './id.ts'
import { inTransaction } from './open.ts'
import { isParts, readJson } from './row.ts'

/** A message of a thread. `metadata` is null but for an assistant's, which has its run's. */
export type Message = StoredMessage & { metadata: unknown; createdAt: string }

interface Row {
  id: string
  role: StoredMessage['role']
  parts: string
  metadata: string | null
  createdAt: string
}

/** A thread's messages, oldest first. */
export const listMessages = (db: Database, threadId: string): Message[] =>
  db
    .query<Row, { threadId: string }>(
      `select id, role, parts, metadata, created_at as createdAt from messages
       where thread_id = $threadId order by position`,
    )
    .all({ threadId })
    .map(row => ({
      ...row,
      parts: readJson(row.parts, 'messages.parts', isParts),
      metadata: row.metadata === null ? null : JSON.parse(row.metadata),
    }))

/** Adds messages at the thread's end and returns those added: one whose id is there already is skipped. */
export const appendMessages = (db: Database, threadId: string, messages: readonly StoredMessage[]): StoredMessage[] =>
  inTransaction(db, () => messages.filter(message => insertMessage(db, threadId, message)))

/** Removes what comes after this message. */
export function removeMessagesAfter(db: Database, threadId: string, id: string): void {
  db.query(
    `delete from messages where thread_id = $threadId
       and position > (select position from messages where thread_id = $threadId and id = $id)`,
  ).run({ threadId, id })
}

/** Adds the assistant's message of a run, with the run's metadata. */
export function appendReply(
  db: Database,
  threadId: string,
  reply: { runId: string; parts: StoredMessage['parts']; metadata: unknown },
): void {
  insertMessage(db, threadId, { id: newId('msg'), role: 'assistant', parts: reply.parts }, reply)
}

function insertMessage(
  db: Database,
  threadId: string,
  message: StoredMessage,
  reply?: { runId: string; metadata: unknown },
): boolean {
  const { changes } = db
    .query(
      `insert into messages (thread_id, id, position, run_id, role, parts, metadata, created_at)
       values ($threadId, $id, (select coalesce(max(position), 0) + 1 from messages where thread_id = $threadId),
         $runId, $role, $parts, $metadata, $now)
       on conflict (thread_id, id) do nothing`,
    )
    .run({
      threadId,
      id: message.id,
      runId: reply?.runId ?? null,
      role: message.role,
      parts: JSON.stringify(message.parts),
      metadata: reply ? JSON.stringify(reply.metadata) : null,
      now: now(),
    })
  return changes > 0
}
