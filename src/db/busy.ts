import { type Database, SQLiteError } from 'bun:sqlite'
import { ApiError } from '../errors.ts'

/**
 * Waiting for another process that has the database locked, without holding up the event loop: SQLite's own wait would stop
 * every other request and stream of the server.
 */

const FIRST_LOOK_MS = 10
const LOOK_MS = 100
const MAX_WAIT_MS = 30_000

/** A commit of a command beside the server takes milliseconds: that long, and no longer, SQLite itself waits. */
export const OWN_WAIT_MS = 20

const looking = new WeakMap<Database, Promise<void>>()

/** True for a lock that another process holds; nothing was done then. */
export const isBusy = (error: unknown): boolean =>
  error instanceof SQLiteError && (error.code?.startsWith('SQLITE_BUSY') ?? false)

/** Resolves when the database can be written to. Throws server_busy when that takes more than half a minute. */
export async function whenFree(db: Database): Promise<void> {
  if (isFree(db)) return
  const shared = looking.get(db) ?? look(db).finally(() => looking.delete(db))
  looking.set(db, shared)
  await shared
}

/** Does `work`, which is one transaction, and does it again while the database is locked. Throws what it throws. */
export async function writeWhenFree<Result>(db: Database, work: () => Result): Promise<Result> {
  for (;;) {
    try {
      return work()
    } catch (error) {
      if (!isBusy(error)) throw error
      await whenFree(db)
    }
  }
}

async function look(db: Database): Promise<void> {
  const deadline = performance.now() + MAX_WAIT_MS
  for (let waitMs = FIRST_LOOK_MS; ; waitMs = Math.min(waitMs * 2, LOOK_MS)) {
    await Bun.sleep(waitMs)
    if (isFree(db)) return
    if (performance.now() > deadline) throw databaseBusy()
  }
}

export const databaseBusy = () =>
  new ApiError('server_busy', 'Another program has had the database locked for too long. Try again.')

/** Looks without waiting. A transaction of our own has the lock already. */
function isFree(db: Database): boolean {
  if (db.inTransaction) return true
  db.run('pragma busy_timeout = 0')
  try {
    db.run('begin immediate')
    db.run('rollback')
    return true
  } catch (error) {
    if (isBusy(error)) return false
    throw error
  } finally {
    db.run(`pragma busy_timeout = ${OWN_WAIT_MS}`)
  }
}
