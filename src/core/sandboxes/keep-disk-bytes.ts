import type { Database } from 'bun:sqlite'
import { writeWhenFree } from '../../db/busy.ts'
import { saveDiskBytes } from '../../db/team-counts.ts'

/** Keeps what sandboxes' files take, so that it is known of those that do not run. */
export const keepDiskBytes =
  (db: Database): ((environmentId: string, diskBytes: number) => void) =>
  (environmentId, diskBytes) => {
    // What could not be written is told again with the next change.
    writeWhenFree(db, () => saveDiskBytes(db, environmentId, diskBytes)).catch(() => {})
  }
