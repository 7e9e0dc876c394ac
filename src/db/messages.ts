import type { Database } from 'bun:sqlite'
import type { Message, MessageBounds } from '../model/message.ts'
import type { StoredMessage } from '../plugin-api/index.ts'
import { now } from './id.ts'
import { moveMessages } from './late-index.ts'
import { inTransaction } from './open.ts'
import { isParts, readJson } from './row.ts'
import { findLaterRun } from './runs.ts'

interface Row {
  id: string
  role: StoredMessage['role']
  parts: string
  metadata: string | null
  createdAt: string
}

/** What messages are listed of: what a thread shows, by its id, or what a branch has beside what it shares. */
export type MessageOwner = string | { branchId: string }

const from = (owner: MessageOwner) =>
  typeof owner === 'string' ? 'messages where thread_id = $owner' : 'branch_messages where branch_id = $owner'

const idOf = (owner: MessageOwner) => (typeof owner === 'string' ? owner : owner.branchId)

const columns = 'id, role, parts, metadata, created_at as createdAt'

const toMessage = ({ position: _, ...row }: Row & { position?: number }): Message => ({
  ...row,
  parts: readJson(row.parts, 'messages.parts', isParts),
  metadata: row.metadata === null ? null : JSON.parse(row.metadata),
})

/** All of a thread's messages, oldest first. Takes long for a long thread: read that page by page. */
export const listMessages = (db: Database, threadId: string): Message[] =>
  db
    .query<Row, { threadId: string }>(`select ${columns} from messages where thread_id = $threadId order by position`)
    .all({ threadId })
    .map(toMessage)

/** The newest messages that came before a position, or of all, oldest first, as many as the bounds have room for. */
export function lastMessages(
  db: Database,
  owner: MessageOwner,
  bounds: MessageBounds,
  before = Number.MAX_SAFE_INTEGER,
): Message[] {
  const rows = db
    .query<Row, { owner: string; before: number; limit: number }>(
      `select ${columns} from ${from(owner)} and position < $before order by position desc limit $limit`,
    )
    .iterate({ owner: idOf(owner), before, limit: bounds.messages })
  return takePage(rows, bounds).reverse().map(toMessage)
}

/** The messages that come after a position and up to another, oldest first, and the position of the last of them; undefined at the end. */
export function nextMessages(
  db: Database,
  owner: MessageOwner,
  bounds: MessageBounds,
  { after, until = Number.MAX_SAFE_INTEGER }: { after: number; until?: number },
): { messages: Message[]; last: number } | undefined {
  const rows = db
    .query<Row & { position: number }, { owner: string; after: number; until: number; limit: number }>(
      `select ${columns}, position from ${from(owner)} and position > $after and position <= $until
       order by position limit $limit`,
    )
    .iterate({ owner: idOf(owner), after, until, limit: bounds.messages })
  const page = takePage(rows, bounds)
  const last = page.at(-1)?.position
  return last === undefined ? undefined : { messages: page.map(toMessage), last }
}

function takePage<Found extends Row>(rows: Iterable<Found>, bounds: MessageBounds): Found[] {
  const page: Found[] = []
  let characters = 0
  for (const row of rows) {
    characters += row.parts.length
    if (page.length > 0 && characters > bounds.characters) break
    page.push(row)
  }
  return page
}

/** Finds the position of a message in its thread or branch. */
export const findPlace = (
  db: Database,
  owner: MessageOwner,
  id: string,
): { position: number; role: StoredMessage['role'] } | undefined =>
  db
    .query<{ position: number; role: StoredMessage['role'] }, { owner: string; id: string }>(
      `select position, role from ${from(owner)} and id = $id`,
    )
    .get({ owner: idOf(owner), id }) ?? undefined

/** Finds the last message of the user's at a position or before it, or of all. */
export function lastQuestion(
  db: Database,
  threadId: string,
  position = Number.MAX_SAFE_INTEGER,
): (StoredMessage & { position: number }) | undefined {
  const row = db
    .query<Row & { position: number }, { threadId: string; position: number }>(
      `select ${columns}, position from messages where thread_id = $threadId and role = 'user' and position <= $position
       order by position desc limit 1`,
    )
    .get({ threadId, position })
  if (!row) return undefined
  const { id, role, parts } = toMessage(row)
  return { id, role, parts, position: row.position }
}

/** Finds the first message after a position. */
export const findAfter = (
  db: Database,
  owner: MessageOwner,
  position: number,
): { id: string; createdAt: string } | undefined =>
  db
    .query<{ id: string; createdAt: string }, { owner: string; position: number }>(
      `select id, created_at as createdAt from ${from(owner)} and position > $position order by position limit 1`,
    )
    .get({ owner: idOf(owner), position }) ?? undefined

/** Copies a thread's messages up to a position into another thread, which has none. */
export function copyMessages(db: Database, threadId: string, until: number, toThreadId: string): void {
  moveMessages(db, () =>
    db
      .query(
        `insert into messages (thread_id, id, position, role, parts, metadata, created_at)
         select $toThreadId, id, position, role, parts, metadata, created_at from messages
         where thread_id = $threadId and position <= $until`,
      )
      .run({ threadId, until, toThreadId }),
  )
}

/** Adds messages at the thread's end and returns those added: one whose id is there already is skipped. */
export const appendMessages = (db: Database, threadId: string, messages: readonly StoredMessage[]): StoredMessage[] =>
  inTransaction(db, () => messages.filter(message => insertMessage(db, threadId, message)))

/** Finds a message of a thread. */
export function findMessage(db: Database, threadId: string, id: string): Message | undefined {
  const row = db
    .query<Row, { threadId: string; id: string }>(
      `select ${columns} from messages where thread_id = $threadId and id = $id`,
    )
    .get({ threadId, id })
  return row ? toMessage(row) : undefined
}

/** Changes the parts of a message, as when a call in it was answered. */
export function setParts(db: Database, threadId: string, id: string, parts: StoredMessage['parts']): void {
  db.query('update messages set parts = $parts where thread_id = $threadId and id = $id').run({
    threadId,
    id,
    parts: JSON.stringify(parts),
  })
}

/** Stores how a run has gone on with a reply, also one that was moved to a branch meanwhile. */
export function replaceReply(
  db: Database,
  threadId: string,
  reply: { id: string; runId: string; parts: StoredMessage['parts']; metadata: unknown },
): void {
  const change = 'set parts = $parts, metadata = $metadata, run_id = $runId where id = $id'
  const { id, runId } = reply
  const row = { threadId, id, runId, parts: JSON.stringify(reply.parts), metadata: JSON.stringify(reply.metadata) }
  if (db.query(`update messages ${change} and thread_id = $threadId`).run(row).changes > 0) return
  const own = 'select id from branches where thread_id = $threadId'
  db.query(`update branch_messages ${change} and branch_id in (${own})`).run(row)
}

/**
 * Adds the assistant's message of a run, with the run's metadata: at the thread's end, or, when the thread went on without
 * the run, before what was said after it, or to the branch that its question was moved to.
 */
export function appendReply(
  db: Database,
  threadId: string,
  reply: { id: string; runId: string; parts: StoredMessage['parts']; metadata: unknown },
): void {
  const later = findLaterRun(db, { id: reply.runId, threadId })
  if (later && addToBranch(db, threadId, reply, later.startedAt)) return
  const place = later && findPlaceFrom(db, threadId, later.startedAt)
  if (place !== undefined) makeRoom(db, threadId, place)
  insertMessage(db, threadId, { id: reply.id, role: 'assistant', parts: reply.parts }, { ...reply, place })
}

/** Adds a message before another one of the thread, or at the thread's end while that is not there. */
export function insertBefore(db: Database, threadId: string, message: StoredMessage, nextId: string): void {
  const next = findPlace(db, threadId, nextId)
  if (next) makeRoom(db, threadId, next.position)
  insertMessage(db, threadId, message, { runId: null, metadata: null, place: next?.position })
}

/** Adds a reply to the first branch that was cut off between the start of its run and `until`. Returns false when there is no such branch. */
const addToBranch = (
  db: Database,
  threadId: string,
  { id, runId, parts, metadata }: Parameters<typeof appendReply>[2],
  until: string,
): boolean =>
  db
    .query(
      `insert into branch_messages (branch_id, id, position, run_id, role, parts, metadata, created_at)
       select branches.id, $id, (select max(position) + 1 from branch_messages where branch_id = branches.id),
         runs.id, 'assistant', $parts, $metadata, $now
       from branches join runs on runs.id = $runId
       where branches.thread_id = $threadId and cut_at > started_at and cut_at <= $until
       order by cut_at, branches.id limit 1`,
    )
    .run({ id, runId, threadId, until, parts: JSON.stringify(parts), metadata: JSON.stringify(metadata), now: now() })
    .changes > 0

/** Finds the position of the first message at this time or later. */
const findPlaceFrom = (db: Database, threadId: string, time: string): number | undefined =>
  db
    .query<{ position: number | null }, { threadId: string; time: string }>(
      'select min(position) as position from messages where thread_id = $threadId and created_at >= $time',
    )
    .get({ threadId, time })?.position ?? undefined

/** In two steps: no two messages may have one position, not even for a moment. */
function makeRoom(db: Database, threadId: string, place: number): void {
  db.query('update messages set position = -position where thread_id = $threadId and position >= $place').run({
    threadId,
    place,
  })
  db.query('update messages set position = 1 - position where thread_id = $threadId and position < 0').run({ threadId })
}

function insertMessage(
  db: Database,
  threadId: string,
  message: StoredMessage,
  reply?: { runId: string | null; metadata: unknown; place: number | undefined },
): boolean {
  const { changes } = db
    .query(
      `insert into messages (thread_id, id, position, run_id, role, parts, metadata, created_at)
       values ($threadId, $id,
         coalesce($place, (select coalesce(max(position), 0) + 1 from messages where thread_id = $threadId)),
         $runId, $role, $parts, $metadata, $now)
       on conflict (thread_id, id) do nothing`,
    )
    .run({
      threadId,
      id: message.id,
      place: reply?.place ?? null,
      runId: reply?.runId ?? null,
      role: message.role,
      parts: JSON.stringify(message.parts),
      metadata: reply?.metadata ? JSON.stringify(reply.metadata) : null,
      now: now(),
    })
  return changes > 0
}
