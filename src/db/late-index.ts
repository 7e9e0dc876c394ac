import type { Database } from 'bun:sqlite'
import { writeWhenFree } from './busy.ts'
import { inTransaction } from './open.ts'

/**
 * Messages that move in bulk get their places in the search index later. They move in one transaction, together with the list of
 * what the index lacks. A server works this list off in steps, does other work in between, and continues after a crash.
 */

/** A step is one transaction. */
const STEP_MS = 10

const wakers = new WeakMap<Database, () => void>()

/** Does `work` in a transaction. When it adds or removes many messages, their places in the index are left for later. */
export const moveMessages = <Result>(db: Database, work: () => Result): Result =>
  inTransaction(db, () => {
    db.run('insert into search_bulk (is_on) values (1)')
    const result = work()
    db.run('delete from search_bulk')
    if (indexSome(db)) wakers.get(db)?.()
    return result
  })

/**
 * Indexes what was left for later, now and whenever `moveMessages` leaves more, until the result is disposed of. Calls
 * `onFailure` when that fails.
 */
export function indexInSteps(db: Database, onFailure: (error: unknown) => void): Disposable {
  let isAsked = false
  let isRunning = false
  let isOver = false
  async function run() {
    isRunning = true
    while (isAsked) {
      await Bun.sleep(STEP_MS)
      if (isOver) return
      isAsked = false
      if (await writeWhenFree(db, () => !isOver && inTransaction(db, () => indexSome(db)))) isAsked = true
    }
  }
  const wake = () => {
    isAsked = true
    if (isRunning) return
    run()
      .catch(onFailure)
      .finally(() => {
        isRunning = false
      })
  }
  wakers.set(db, wake)
  wake()
  return {
    [Symbol.dispose]() {
      isOver = true
      wakers.delete(db)
    },
  }
}

/** Indexes some messages. Returns true when more are left. */
function indexSome(db: Database): boolean {
  const until = performance.now() + STEP_MS
  const isTime = () => performance.now() < until
  while (isTime()) if (!removeOne(db) && !addOne(db)) return false
  return true
}

function removeOne(db: Database): boolean {
  const row = db.query<{ id: number }, []>('select search_id as id from search_removed limit 1').get()
  if (!row) return false
  db.query('delete from message_search where rowid = $id').run(row)
  db.query('delete from search_removed where search_id = $id').run(row)
  return true
}

/** A message that was deleted, or has a place already, is skipped. */
function addOne(db: Database): boolean {
  const row = db
    .query<{ number: number; threadId: string; id: string }, []>(
      'select number, thread_id as threadId, message_id as id from search_added order by number limit 1',
    )
    .get()
  if (!row) return false
  const { number, ...message } = row
  db.query('delete from search_added where number = $number').run({ number })
  const isMissing =
    db.query('select 1 from messages where thread_id = $threadId and id = $id and search_id is null').get(message) !==
    null
  if (!isMissing) return true
  db.query('update threads set search_count = search_count + 1 where id = $threadId').run({ threadId: row.threadId })
  db.query(
    `update messages set search_id = (
         select (search_number << 24) | (search_count & 16777215) from threads where threads.id = $threadId
       ) where thread_id = $threadId and id = $id`,
  ).run(message)
  db.query(
    `delete from search_removed where search_id = (select search_id from messages where thread_id = $threadId and id = $id)`,
  ).run(message)
  db.query(
    `insert or replace into message_search (rowid, text, scope)
     select search_id, text, scope from searchable_messages where thread_id = $threadId and id = $id`,
  ).run(message)
  return true
}
