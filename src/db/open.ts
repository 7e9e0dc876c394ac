import { Database, SQLiteError } from 'bun:sqlite'
import { closeSync, openSync } from 'node:fs'
import { OWN_WAIT_MS } from './busy.ts'
import { type Migrating, migrate } from './migrate.ts'

/** How long a command waits for another process that writes. */
const PATIENCE_MS = 5000

/** The default of 20 is less than the statements of one chat request. */
const MAX_QUERY_CACHE_SIZE = 200

export interface OpenOptions extends Migrating {
  /**
   * With `external`, another program copies the log and moves it into the database. This connection does not, because it would
   * discard what is not copied yet.
   */
  walCheckpoint?: 'own' | 'external'
}

/**
 * Opens the database file, made with mode 0600 when it is missing, and brings it to this version's schema. As a server has
 * it: a commit does not wait for the disk, nor long for another process. Throws when the file is of a newer
 * version, or no database, and when it must be changed for this version while a server of another version works on it.
 */
export function openDatabase(path: string, options: OpenOptions = {}): Database {
  // SQLite gives its -wal and -shm files the mode of the database.
  closeSync(openSync(path, 'a', 0o600))
  Database.MAX_QUERY_CACHE_SIZE = MAX_QUERY_CACHE_SIZE
  const db = new Database(path, { strict: true, readwrite: true })
  try {
    db.run(`pragma busy_timeout = ${PATIENCE_MS}`)
    useWriteAheadLog(db)
    db.run('pragma synchronous = normal')
    // A migration that makes a table anew drops the old one: with foreign keys on, that would delete all that refers to it.
    db.run('pragma foreign_keys = off')
    // What a migration encrypts is not to stay readable in freed space, or in the log.
    db.run('pragma secure_delete = on')
    const isOthers = options.walCheckpoint === 'external'
    if (isOthers) leaveLog(db)
    if (migrate(db, options) && !isOthers) db.run('pragma wal_checkpoint(truncate)')
    db.run('pragma secure_delete = off')
    db.run('pragma foreign_keys = on')
    db.run(`pragma busy_timeout = ${OWN_WAIT_MS}`)
    return db
  } catch (error) {
    db.close()
    throw error
  }
}

/** Makes each commit wait for its turn and for the disk: for a command, which holds up no other request. */
export function commitPatiently(db: Database): void {
  db.run(`pragma busy_timeout = ${PATIENCE_MS}`)
  db.run('pragma synchronous = full')
  // A server that runs beside it moves the log, or the last connection does when it closes.
  leaveLog(db)
}

const leaveLog = (db: Database) => db.run('pragma wal_autocheckpoint = 0')

/** Does `work` in one write transaction, taken at once; inside another one it is a part of that. Throws what `work` throws. */
export const inTransaction = <Result>(db: Database, work: () => Result): Result => db.transaction(work).immediate()

/** The switch does not wait for busy_timeout: on a new database another process may be switching too. */
function useWriteAheadLog(db: Database): void {
  for (let attemptsLeft = 100; ; attemptsLeft--) {
    try {
      db.run('pragma journal_mode = wal')
      return
    } catch (error) {
      if (attemptsLeft === 0 || !(error instanceof SQLiteError && error.code === 'SQLITE_BUSY')) throw error
      Bun.sleepSync(10)
    }
  }
}
