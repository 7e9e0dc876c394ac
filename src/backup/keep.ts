import { messageOf } from '../errors.ts'
import type { BackupPlace, StoredFile } from './backup-place.ts'
import { timeOfFile } from './format.ts'

/** Rules that say which backups are kept. Without any rule, all are. */
export interface Keep {
  /** Keeps this many of the newest. */
  count?: number
  /** Keeps all that are younger than this. */
  days?: number
}

const DAY_MS = 86_400_000

/** The backups that were removed because no rule keeps them. */
export interface Removed {
  names: string[]
  /** Why other backups could not be removed. */
  problems: string[]
}

/** Removes the backups that no rule keeps. The newest always stays. Never rejects: the result lists failures. */
export async function removeOld(place: BackupPlace, keep: Keep, now: Date): Promise<Removed> {
  const removed: Removed = { names: [], problems: [] }
  if (keep.count === undefined && keep.days === undefined) return removed
  try {
    for (const { name } of findOld(await place.list(), keep, now)) {
      try {
        await place.remove(name)
        removed.names.push(name)
      } catch (error) {
        removed.problems.push(`${name} is not removed: ${messageOf(error)}`)
      }
    }
  } catch (error) {
    removed.problems.push(`old backups are not removed: ${messageOf(error)}`)
  }
  return removed
}

function findOld(files: readonly StoredFile[], { count, days }: Keep, now: Date): StoredFile[] {
  const newestFirst = files.toSorted((a, b) => (a.name < b.name ? 1 : -1))
  return newestFirst.slice(Math.max(1, count ?? 1)).filter(({ name }) => {
    const made = timeOfFile(name)
    return made && !(days !== undefined && now.getTime() - made.getTime() < days * DAY_MS)
  })
}
