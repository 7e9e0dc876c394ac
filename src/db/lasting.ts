import type { Database } from 'bun:sqlite'
import { closeSync, fdatasync, openSync } from 'node:fs'
import { promisify } from 'node:util'
import { codeOf } from '../read/error-code.ts'

/**
 * Commits that outlast a loss of power. A commit alone does not wait for the disk, so that chunks stay cheap; the log of the
 * database is synced beside the event loop, once for all that wait for it. With `--durability full` nothing that was committed
 * is shown before such a sync.
 */

const datasync = promisify(fdatasync)

interface Syncs {
  /** Whether every transaction counts as marked. */
  isFull: boolean
  /** Syncs to the disk what was written to a file, given by its descriptor. */
  datasync: (descriptor: number) => Promise<void>
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
  const syncs: Syncs = {
    isFull: false,
    datasync,
    isMarked: false,
    syncedChanges: countChanges(db),
    running: undefined,
    next: undefined,
  }
  all.set(db, syncs)
  return syncs
}

/**
 * Chooses how much of the database may be shown from now on: with `full`, only what is on the disk. Call it once, before the
 * first request; without a call, `normal` applies. `syncFile` is for tests.
 */
export const useDurability = (db: Database, durability: 'normal' | 'full', syncFile: Syncs['datasync'] = datasync) =>
  void Object.assign(getSyncs(db), { isFull: durability === 'full', datasync: syncFile })

/** Whether what is committed is shown only when it is on the disk. */
export const isFull = (db: Database): boolean => getSyncs(db).isFull

/** Marks the current transaction: it has to be on the disk before its result is shown. */
export function mustLast(db: Database): void {
  getSyncs(db).isMarked = true
}

/** Resolves when every marked transaction, in full durability every one, is on the disk. Rejects when the disk fails. */
export function lasting(db: Database): Promise<void> {
  const { isFull, isMarked, syncedChanges, next, running } = getSyncs(db)
  if (isMarked || (isFull && countChanges(db) !== syncedChanges)) return sync(db)
  // What was marked before may be on its way.
  return next ?? running ?? Promise.resolve()
}

/**
 * Resolves when everything that was read so far may be shown. Without full durability that is at once. Rejects when the disk
 * fails.
 */
export const showable = async (db: Database): Promise<void> => {
  if (isFull(db)) await lasting(db)
}

/** Resolves when all that was committed so far is on the disk. Calls that wait at the same time share one sync. */
export function sync(db: Database): Promise<void> {
  const syncs = getSyncs(db)
  syncs.next ??= (syncs.running ?? Promise.resolve())
    .catch(() => {})
    .then(() => {
      syncs.isMarked = false
      syncs.syncedChanges = countChanges(db)
      syncs.running = syncLog(db.filename, syncs.datasync)
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

/**
 * SQLite writes a commit to the log, and a checkpoint that empties the log has synced the commit itself. The file is opened and
 * closed here, because on another thread each of the two would take as long as the sync.
 */
async function syncLog(databasePath: string, datasync: Syncs['datasync']): Promise<void> {
  const file = openLog(`${databasePath}-wal`)
  if (file === undefined) return
  try {
    await datasync(file)
  } finally {
    closeSync(file)
  }
}

/** Undefined when the last connection was closed, which moves the whole log into the database. */
function openLog(path: string): number | undefined {
  try {
    return openSync(path, 'r')
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}

const countChanges = (db: Database): number =>
  db.query<{ changes: number }, []>('select total_changes() as changes').get()?.changes ?? 0
