import { join } from 'node:path'
import { goBack } from '../db/earlier-copies.ts'
import { lockDirectory } from '../db/lock.ts'
import { readConfig } from '../start/config.ts'
import type { Given } from './command-line.ts'

/** Restores the database as it was before a newer version changed it. */
export async function database({ settings }: Given): Promise<void> {
  const { dataDirectory } = await readConfig(settings, process.env)
  const lock = lockDirectory(dataDirectory)
  if (!lock) throw new Error(`--data-dir: a server runs on ${dataDirectory}. Stop it first.`)
  try {
    const { copy, newer } = goBack(join(dataDirectory, 'threadbox.db'))
    console.log(
      `The database is as it was on ${copy.at} (schema ${copy.schema}). What was written since is in ${newer}.`,
    )
  } finally {
    lock.release()
  }
}
