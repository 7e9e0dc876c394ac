import { chownSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { goBack, undoGoBack } from '../../db/earlier-copies.ts'
import { lockDirectory } from '../../db/lock.ts'
import { waitUntil } from './wait.ts'

/** How long to wait for the lock: a supervisor may again and again start a server that then refuses this database. */
const LOCKED_WITHIN_MS = 30_000

/**
 * Restores the newest copy of the database with at most this schema. Returns the path of the newer one. Throws while a server
 * uses it.
 */
export const restore = (dataDirectory: string, schema: number): Promise<string> =>
  alone(dataDirectory, path => {
    const { uid, gid } = statSync(path)
    const { copy, newer } = goBack(path, schema)
    chownSync(path, uid, gid)
    console.error(
      `threadbox: the database is as it was on ${copy.at} (schema ${copy.schema}); the newer one is ${newer}`,
    )
    return newer
  })

/** Undoes `restore` before anything was written to the restored copy. */
export const unrestore = (dataDirectory: string, newer: string): Promise<void> =>
  alone(dataDirectory, path => undoGoBack(path, newer))

async function alone<Result>(dataDirectory: string, work: (database: string) => Result): Promise<Result> {
  let lock: { release(): void } | undefined
  await waitUntil(() => {
    lock = lockDirectory(dataDirectory)
    return lock !== undefined
  }, LOCKED_WITHIN_MS)
  if (!lock) throw new Error(`--data-dir: a server runs on ${dataDirectory}, and the database cannot be put back`)
  try {
    return work(join(dataDirectory, 'threadbox.db'))
  } finally {
    lock.release()
  }
}
