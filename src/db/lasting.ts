import type { Database } from 'bun:sqlite'
import { open } from 'node:fs/promises'
import { codeOf } from '../read/error-code.ts'

/**
 * Commits that outlast a loss of power. A commit alone does not wait for the disk, so that chunks stay cheap; the log of the
 * database is synced beside the event loop, once for all that wait for it.
 */

interface Syncs {
  /** Something that must last was committed since the last sync began. */
  isMarked: boolean
  /** What was committed when the last sync began, as SQLite counts. */
  syncedChanges: number
  running: Promise<void> | undefined
  next: Promise<void> | undefined
}

const all = new WeakMap<Database, Syncs>()

function getSyncs(db: Database): Syncs {
  const found = all.get(db)
  if (found) return found
  const syncs: Syncs = { isMarked: false, syncedChanges: countChanges(db), running: undefined, next: undefined }
  all.set(db, syncs)
  return syncs
}

/** Marks the current transaction: it has to be on the disk before its result is shown. */
export function mustLast(db: Database): void {
  getSyncs(db).isMarked = true
}

/** Resolves when every marked transaction is on the disk. Rejects when the disk fails. */
export function lasting(db: Database): Promise<void> {
  const { isMarked, next, running } = getSyncs(db)
  if (isMarked) return sync(db)
  // What was marked before may be on its way.
  return next ?? running ?? Promise.resolve()
}

/** Resolves when all that was committed so far is on the disk. Calls that wait at the same time share one sync. */
export function sync(db: Database): Promise<void> {
  const syncs = getSyncs(db)
  syncs.next ??= (syncs.running ?? Promise.resolve())
    .catch(() => {})
    .then(() => {
      syncs.isMarked = false
      syncs.syncedChanges = countChanges(db)
      syncs.running = syncLog(db.filename)
        .catch(error => {
          syncs.isMarked = true
          throw error
        })
        .finally(() => {
          syncs.running = undefined
        })
      syncs.next = undefined
      return syncs.running
    })
  return syncs.next
}

const SYNC_MS = 1000

/** Syncs every second, so that no more than that can be lost. Calls `onFailure` each time that the disk fails. */
export function syncEachSecond(db: Database, onFailure: (error: unknown) => void): Disposable {
  const timer = setInterval(() => {
    if (countChanges(db) !== getSyncs(db).syncedChanges) sync(db).catch(onFailure)
  }, SYNC_MS)
  return { [Symbol.dispose]: () => clearInterval(timer) }
}

/** SQLite writes a commit's frames to the log; a checkpoint that takes them out of it has synced them itself. */
async function syncLog(databasePath: string): Promise<void> {
  const file = await open(`${databasePath}-wal`, 'r').catch(error => {
    // The last connection was closed, which puts all of the log into the database.
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  })
  try {
    await file?.datasync()
  } finally {
    await file?.close()
  }
}

const countChanges = (db: Database): number =>
  db.query<{ changes: number }, []>('select total_changes() as changes').get()?.changes ?? 0
