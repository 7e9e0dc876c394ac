import type { Database } from 'bun:sqlite'
import { writeWhenFree } from '../../db/busy.ts'
import { saveDiskBytes } from '../../db/team-counts.ts'

/** Stores how much space the files of sandboxes take, so that it is known also for those that do not run. */
export const keepDiskBytes =
  (db: Database): ((environmentId: string, diskBytes: number) => void) =>
  (environmentId, diskBytes) => {
    // A value that could not be stored is reported again with the next change.
    writeWhenFree(db, () => saveDiskBytes(db, environmentId, diskBytes)).catch(() => {})
  }
