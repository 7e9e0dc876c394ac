import { type Database, SQLiteError } from 'bun:sqlite'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { commitPatiently, type OpenOptions, openDatabase } from '../db/open.ts'
import { wordsOf } from '../errors.ts'

/** Opens the database of a data directory for a command that works beside a server. Waits for other writers. */
export async function openData(dataDirectory: string): Promise<Database> {
  const db = await openServerData(dataDirectory, { report: line => console.error(`threadbox: ${line}`) })
  commitPatiently(db)
  return db
}

/** Makes the data directory, with access for its owner only, when it is missing. Throws an error that names the setting. */
export async function makeDirectory(dataDirectory: string): Promise<void> {
  await mkdir(dataDirectory, { recursive: true, mode: 0o700 }).catch(error => {
    throw new Error(`--data-dir: ${wordsOf(error)}`)
  })
}

/**
 * Opens the database of a data directory; makes both when they are missing. Throws an error that names the setting.
 */
export async function openServerData(dataDirectory: string, options: OpenOptions): Promise<Database> {
  const path = join(dataDirectory, 'threadbox.db')
  await makeDirectory(dataDirectory)
  try {
    return openDatabase(path, options)
  } catch (error) {
    // SQLite does not say which file.
    throw new Error(`--data-dir: ${error instanceof SQLiteError ? `${path}: ` : ''}${wordsOf(error)}`)
  }
}
