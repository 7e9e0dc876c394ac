import { Database, SQLiteError } from 'bun:sqlite'
import { closeSync, openSync } from 'node:fs'
import { OWN_WAIT_MS } from './busy.ts'
import initial from './migrations/0001_initial.sql' with { type: 'text' }
import models from './migrations/0002_models.sql' with { type: 'text' }
import deployments from './migrations/0003_deployments.sql' with { type: 'text' }
import conversations from './migrations/0004_conversations.sql' with { type: 'text' }
import environments from './migrations/0005_environments.sql' with { type: 'text' }
import usageIndex from './migrations/0006_usage_index.sql' with { type: 'text' }
import waiting from './migrations/0007_waiting.sql' with { type: 'text' }
import queuedMessages from './migrations/0008_queued_messages.sql' with { type: 'text' }
import branches from './migrations/0009_branches.sql' with { type: 'text' }
import search from './migrations/0010_search.sql' with { type: 'text' }
import waitingReplies from './migrations/0011_waiting_replies.sql' with { type: 'text' }
import rememberedRules from './migrations/0012_remembered_rules.sql' with { type: 'text' }
import { sealRows } from './seal-rows.ts'

/** How long a command waits for another process that writes. */
const PATIENCE_MS = 5000

type Migration = (db: Database) => void

const sql =
  (text: string): Migration =>
  db => {
    db.run(text)
  }

/** Each brings the schema to the next version. */
const migrations: readonly Migration[] = [
  sql(initial),
  sql(models),
  db => {
    sql(deployments)(db)
    sealRows(db)
  },
  sql(conversations),
  sql(environments),
  sql(usageIndex),
  sql(waiting),
  sql(queuedMessages),
  sql(branches),
  sql(search),
  sql(waitingReplies),
  sql(rememberedRules),
]

/** The default of 20 is less than the statements of one chat request. */
const MAX_QUERY_CACHE_SIZE = 200

/**
 * Opens the database file, made with mode 0600 when it is missing, and brings it to this version's schema. As a server has
 * it: a commit does not wait for the disk, nor long for another process. Throws when the file is of a newer
 * version, or no database.
 */
export function openDatabase(path: string): Database {
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
    const isChanged = inTransaction(db, () => migrate(db, path))
    if (isChanged) db.run('pragma wal_checkpoint(truncate)')
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
}

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

/** True when there was something to do. */
function migrate(db: Database, path: string): boolean {
  const version = db.query<{ user_version: number }, []>('pragma user_version').get()?.user_version ?? 0
  if (version > migrations.length)
    throw new Error(
      `${path} was written by a newer threadbox (schema ${version}, this one knows ${migrations.length}). Use that version, or another data directory.`,
    )
  for (const step of migrations.slice(version)) step(db)
  db.run(`pragma user_version = ${migrations.length}`)
  return version < migrations.length
}
