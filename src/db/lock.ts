import { Database } from 'bun:sqlite'
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'

/** The file that a server holds a lock on for as long as it runs. */
export const SERVER_LOCK = 'server.lock'

/**
 * Makes this process the only server on a data directory until it ends, however it ends. Undefined when there is one.
 * SQLite's lock on a file of its own: the kernel lets it go with the process, and no child inherits it.
 */
export function lockDirectory(directory: string): { release(): void } | undefined {
  const path = join(directory, SERVER_LOCK)
  closeSync(openSync(path, 'a', 0o600))
  const db = new Database(path)
  try {
    db.run('pragma locking_mode = exclusive')
    db.run('begin exclusive')
    return { release: () => db.close() }
  } catch (error) {
    db.close()
    if (error instanceof Error && 'code' in error && error.code === 'SQLITE_BUSY') return undefined
    throw error
  }
}
