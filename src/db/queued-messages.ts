import type { Database } from 'bun:sqlite'
import type { QueuedMessage } from '../model/queued-message.ts'
import type { StoredMessage } from '../plugin-api/index.ts'
import { isObject } from '../read/json.ts'
import { now } from './id.ts'
import { mustLast } from './lasting.ts'
import { isParts, readJson } from './row.ts'

interface Row extends Omit<QueuedMessage, 'isHeld' | 'keyId' | 'messages' | 'request'> {
  held: number
  keyId: string | null
  messages: string
  request: string
}

const columns = `id, thread_id as threadId, mode, held, agent_slug as agentSlug, key_id as keyId, messages, request,
  created_at as createdAt`

const toQueued = ({ held, keyId, messages, request, ...row }: Row): QueuedMessage => ({
  ...row,
  isHeld: held === 1,
  ...(keyId !== null && { keyId }),
  messages: readJson(messages, 'queued_messages.messages', isMessages),
  request: readJson(request, 'queued_messages.request', isObject),
})

const isMessages = (value: unknown): value is StoredMessage[] =>
  Array.isArray(value) &&
  value.every(
    each => isObject(each) && typeof each.id === 'string' && typeof each.role === 'string' && isParts(each.parts),
  )

/** Adds a message at the queue's end. Throws when the thread is gone, or has one of this id in its queue. */
export function insertQueued(db: Database, message: Omit<QueuedMessage, 'isHeld' | 'createdAt'>): void {
  mustLast(db)
  db.query(
    `insert into queued_messages (thread_id, id, position, mode, agent_slug, key_id, messages, request, created_at)
     values ($threadId, $id, (select coalesce(max(position), 0) + 1 from queued_messages where thread_id = $threadId),
       $mode, $agentSlug, $keyId, $messages, $request, $now)`,
  ).run({
    threadId: message.threadId,
    id: message.id,
    mode: message.mode,
    agentSlug: message.agentSlug,
    keyId: message.keyId ?? null,
    messages: JSON.stringify(message.messages),
    request: JSON.stringify(message.request),
    now: now(),
  })
}

/** A thread's queue, in the order in which it runs. */
export const listQueued = (db: Database, threadId: string): QueuedMessage[] =>
  db
    .query<Row, { threadId: string }>(
      `select ${columns} from queued_messages where thread_id = $threadId order by mode desc, position`,
    )
    .all({ threadId })
    .map(toQueued)

/** The first message of a thread's queue. */
export function firstQueued(db: Database, threadId: string): QueuedMessage | undefined {
  const row = db
    .query<Row, { threadId: string }>(
      `select ${columns} from queued_messages where thread_id = $threadId order by mode desc, position limit 1`,
    )
    .get({ threadId })
  return row ? toQueued(row) : undefined
}

export function findQueued(db: Database, threadId: string, id: string): QueuedMessage | undefined {
  const row = db
    .query<Row, { threadId: string; id: string }>(
      `select ${columns} from queued_messages where thread_id = $threadId and id = $id`,
    )
    .get({ threadId, id })
  return row ? toQueued(row) : undefined
}

/** How many messages a thread's queue has, and how many characters these. */
export const measureQueue = (db: Database, threadId: string): { messages: number; characters: number } =>
  db
    .query<{ messages: number; characters: number }, { threadId: string }>(
      `select count(*) as messages, coalesce(sum(length(messages) + length(request)), 0) as characters
       from queued_messages where thread_id = $threadId`,
    )
    .get({ threadId }) ?? { messages: 0, characters: 0 }

/** The threads that have a queue: all of them, or those of a sandbox. */
export const listThreadsWithQueue = (db: Database, sandboxId?: string): string[] =>
  db
    .query<{ threadId: string }, { sandboxId: string | null }>(
      `select distinct thread_id as threadId from queued_messages
       where $sandboxId is null or thread_id in (select id from threads where sandbox_id = $sandboxId)`,
    )
    .all({ sandboxId: sandboxId ?? null })
    .map(({ threadId }) => threadId)

/** False when the queue has no such message. */
export function deleteQueued(db: Database, threadId: string, id: string): boolean {
  mustLast(db)
  return (
    db.query('delete from queued_messages where thread_id = $threadId and id = $id').run({ threadId, id }).changes > 0
  )
}

/** Deletes a thread's whole queue. */
export function dropQueue(db: Database, threadId: string): void {
  mustLast(db)
  db.query('delete from queued_messages where thread_id = $threadId').run({ threadId })
}

/** Stops what a thread's queue has, or lets it go on. */
export function holdQueue(db: Database, threadId: string, isHeld: boolean): void {
  mustLast(db)
  db.query('update queued_messages set held = $held where thread_id = $threadId').run({
    threadId,
    held: isHeld ? 1 : 0,
  })
}

/** Lets the active run take a message that waits. */
export function steerQueued(db: Database, threadId: string, id: string): void {
  mustLast(db)
  db.query(`update queued_messages set mode = 'steer' where thread_id = $threadId and id = $id`).run({ threadId, id })
}

/** What was meant for a run that is over comes first in the queue, in its order. */
export function keepSteeringFirst(db: Database, threadId: string): void {
  db.query(
    `update queued_messages set mode = 'queue', position = position -
       (select max(position) - min(position) + 1 from queued_messages where thread_id = $threadId)
     where thread_id = $threadId and mode = 'steer'`,
  ).run({ threadId })
}
