import type { Database } from 'bun:sqlite'
import { databaseBusy, isBusy, whenFree } from '../db/busy.ts'
import { lasting, showable } from '../db/lasting.ts'
import type { ApiError } from '../errors.ts'

/**
 * Does work that may change the database, once the database can be written to. Resolves when what it stored would survive
 * a loss of power. Throws server_busy, and the disk's own error.
 */
export async function commit<Result>(db: Database, work: () => Promise<Result>): Promise<Result> {
  await whenFree(db)
  const result = await work()
  await lasting(db)
  return result
}

/** Does work that reads the database. With full durability it resolves when what it read would survive a loss of power. */
export async function read<Result>(db: Database, work: () => Promise<Result>): Promise<Result> {
  const result = await work()
  await showable(db)
  return result
}

/** The error to answer with when another process has had the database locked; undefined for any other error. */
export const toBusyError = (error: unknown): ApiError | undefined => (isBusy(error) ? databaseBusy() : undefined)
