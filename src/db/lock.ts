import { Database } from 'bun:sqlite'
import { closeSync, fstatSync, openSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** The file that a server holds a lock on for as long as it runs. */
export const SERVER_LOCK = 'server.lock'

/**
 * Makes this process the only server on a data directory until it ends, however it ends. Undefined when there is one.
 * Takes SQLite's lock on a file of its own with this name. The kernel releases it with the process, and no child inherits it.
 */
export function lockDirectory(directory: string, name = SERVER_LOCK): { release(): void } | undefined {
  const path = join(directory, name)
  const inode = makeFile(path)
  const db = new Database(path)
  try {
    // This keeps SQLite from making a journal file.
    db.run('pragma journal_mode = memory')
    db.run('pragma locking_mode = exclusive')
    db.run('begin exclusive')
    // The former holder may have removed the file meanwhile: a lock on a removed file excludes no other process.
    if (statSync(path, { throwIfNoEntry: false })?.ino === inode) return { release: () => db.close() }
    db.close()
    return undefined
  } catch (error) {
    db.close()
    if (error instanceof Error && 'code' in error && error.code === 'SQLITE_BUSY') return undefined
    throw error
  }
}

/** Takes such a lock for some work, and removes its file at the end. */
export function lockForWork(directory: string, name: string): { release(): void } | undefined {
  const lock = lockDirectory(directory, name)
  return (
    lock && {
      release() {
        rmSync(join(directory, name), { force: true })
        lock.release()
      },
    }
  )
}

/** Makes a file when it is missing. Returns its inode number. */
function makeFile(path: string): number {
  const descriptor = openSync(path, 'a', 0o600)
  try {
    return fstatSync(descriptor).ino
  } finally {
    closeSync(descriptor)
  }
}
