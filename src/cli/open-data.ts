import type { Database } from 'bun:sqlite'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { readConfig } from '../config.ts'
import { openDatabase } from '../db/open.ts'

/** The database of the data directory that these flags, the environment and the file name. */
export async function openData(flags: readonly string[]): Promise<Database> {
  const { dataDirectory } = await readConfig(flags, process.env)
  return openIn(dataDirectory)
}

/** Makes the directory when it is missing. Others may pass through it, to sandboxes of theirs, but not look. */
export async function openIn(dataDirectory: string): Promise<Database> {
  await mkdir(dataDirectory, { recursive: true, mode: 0o700 })
  return openDatabase(join(dataDirectory, 'threadbox.db'))
}
