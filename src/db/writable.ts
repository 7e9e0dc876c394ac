import type { Database } from 'bun:sqlite'
import { isBusy } from './busy.ts'

/** Throws when nothing can be written. Another process that is writing at the moment is not an error. */
export function assertWritable(db: Database): void {
  try {
    db.run('begin immediate')
    db.run('rollback')
  } catch (error) {
    if (!isBusy(error)) throw error
  }
}
