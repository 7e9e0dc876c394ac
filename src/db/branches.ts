import type { Database } from 'bun:sqlite'
import type { Branch, BranchBounds } from '../model/branch.ts'
import { newId, now } from './id.ts'
import { moveMessages } from './late-index.ts'
import { findAfter, findPlace, type MessageOwner } from './messages.ts'

interface Row extends Omit<Branch, 'isActive' | 'first'> {
  isActive: 0 | 1
  firstId: string | null
  firstCreatedAt: string | null
}

/** A thread's branches, oldest first. Empty for one that was never cut. */
export const listBranches = (db: Database, threadId: string): Branch[] =>
  db
    .query<Row, { threadId: string }>(
      `select branches.id, parent_id as parentId, after_message_id as afterMessageId, is_active as isActive,
         first.id as firstId, first.created_at as firstCreatedAt
       from branches left join branch_messages as first on first.branch_id = branches.id
         and first.position = (select min(position) from branch_messages where branch_id = branches.id)
       where thread_id = $threadId order by branches.id`,
    )
    .all({ threadId })
    .map(({ isActive, firstId, firstCreatedAt, ...row }) => ({
      ...row,
      isActive: isActive === 1,
      first: firstId === null || firstCreatedAt === null ? null : { id: firstId, createdAt: firstCreatedAt },
    }))

/** The branch that a thread shows; undefined when it was never cut. */
export const findActiveBranch = (db: Database, threadId: string): string | undefined =>
  db
    .query<{ id: string }, { threadId: string }>(
      'select id from branches where thread_id = $threadId and is_active = 1',
    )
    .get({ threadId })?.id

/** Moves this message of a thread, and what comes after it, to the branch that was shown. The thread goes on as a new one. */
export function cutBranch(db: Database, threadId: string, messageId: string, bounds: BranchBounds): void {
  moveMessages(db, () => {
    const cut = moveTail(db, threadId, messageId)
    insertActive(db, threadId)
    dropOldest(db, threadId, cut, bounds)
  })
}

/**
 * Makes a thread show another of its branches: `path` from the one that shares its beginning with what is shown now, to
 * the one to show. What was shown is kept as a branch, unless all of it is a part of what is shown then.
 */
export function showBranch(db: Database, threadId: string, path: readonly Branch[]): void {
  moveMessages(db, () => {
    const shared = path[0]?.afterMessageId ?? null
    const tail = findAfter(db, threadId, shared === null ? 0 : getPlace(db, threadId, shared))
    if (tail) moveTail(db, threadId, tail.id)
    else db.query('delete from branches where thread_id = $threadId and is_active = 1').run({ threadId })
    for (const [index, { id }] of path.entries()) takeBack(db, threadId, id, path[index + 1]?.afterMessageId ?? null)
    const id = path.at(-1)?.id ?? ''
    db.query(
      `update branches set is_active = 1, parent_id = null, after_message_id = null, bytes = 0, cut_at = null
       where id = $id`,
    ).run({ id })
  })
}

function insertActive(db: Database, threadId: string): string {
  const id = newId('brn')
  db.query('insert into branches (id, thread_id, is_active, created_at) values ($id, $threadId, 1, $now)').run({
    id,
    threadId,
    now: now(),
  })
  return id
}

/** The thread shows no branch after this. Returns the one that it has shown. */
function moveTail(db: Database, threadId: string, messageId: string): string {
  const id = findActiveBranch(db, threadId) ?? insertActive(db, threadId)
  const names = { threadId, messageId }
  const place = 'select position from messages where thread_id = $threadId and id = $messageId'
  db.query(
    `update branches set is_active = 0, cut_at = $now, after_message_id =
       (select id from messages where thread_id = $threadId and position < (${place}) order by position desc limit 1)
     where id = $id`,
  ).run({ ...names, id, now: now() })
  db.query(
    `insert into branch_messages (branch_id, id, position, run_id, role, parts, metadata, created_at)
     select $id, id, position, run_id, role, parts, metadata, created_at from messages
     where thread_id = $threadId and position >= (${place})`,
  ).run({ ...names, id })
  db.query(`delete from messages where thread_id = $threadId and position >= (${place})`).run(names)
  // Branches that share what the branch has now hang on it.
  db.query(
    `update branches set parent_id = $id where thread_id = $threadId and parent_id is null and is_active = 0 and id <> $id
       and after_message_id in (select id from branch_messages where branch_id = $id)`,
  ).run({ threadId, id })
  measure(db, id)
  return id
}

/** Moves a branch's messages to the end of the thread's, up to one of them or all. A branch with nothing left is removed. */
function takeBack(db: Database, threadId: string, branchId: string, untilId: string | null): void {
  const until = untilId === null ? Number.MAX_SAFE_INTEGER : getPlace(db, { branchId }, untilId)
  db.query(
    `insert into messages (thread_id, id, position, run_id, role, parts, metadata, created_at)
     select $threadId, id, row_number() over (order by position)
         + (select coalesce(max(position), 0) from messages where thread_id = $threadId),
       run_id, role, parts, metadata, created_at
     from branch_messages where branch_id = $branchId and position <= $until`,
  ).run({ threadId, branchId, until })
  db.query('delete from branch_messages where branch_id = $branchId and position <= $until').run({ branchId, until })
  db.query(
    `update branches set parent_id = null where parent_id = $branchId
       and after_message_id not in (select id from branch_messages where branch_id = $branchId)`,
  ).run({ branchId })
  if (untilId === null) return
  db.query('update branches set parent_id = null, after_message_id = $untilId where id = $branchId').run({
    branchId,
    untilId,
  })
  measure(db, branchId)
  db.query(
    'delete from branches where id = $branchId and not exists (select 1 from branch_messages where branch_id = $branchId)',
  ).run({ branchId })
}

const measure = (db: Database, id: string) =>
  db
    .query(
      `update branches set bytes =
         (select coalesce(sum(octet_length(parts)), 0) from branch_messages where branch_id = $id) where id = $id`,
    )
    .run({ id })

/** One that others hang on is needed by them: it goes after them. */
function dropOldest(db: Database, threadId: string, newest: string, bounds: BranchBounds): void {
  for (;;) {
    const kept = db
      .query<{ count: number; bytes: number }, { threadId: string }>(
        'select count(*) as count, sum(bytes) as bytes from branches where thread_id = $threadId and is_active = 0',
      )
      .get({ threadId })
    if (!kept || (kept.count <= bounds.branches && kept.bytes <= bounds.bytes)) return
    const { changes } = db
      .query(
        `delete from branches where id = (
           select id from branches where thread_id = $threadId and is_active = 0 and id <> $newest
             and not exists (select 1 from branches as other where other.parent_id = branches.id)
           order by cut_at, id limit 1)`,
      )
      .run({ threadId, newest })
    if (changes === 0) return
  }
}

/** Throws when the message is not there. */
function getPlace(db: Database, owner: MessageOwner, messageId: string): number {
  const place = findPlace(db, owner, messageId)
  if (!place) throw new Error('The database holds a branch without the message that it follows.')
  return place.position
}
