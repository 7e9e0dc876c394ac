import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { checkDatabase, checkSecrets } from '../db/snapshot.ts'
import { syncPath, syncTree } from '../disk/lasting-files.ts'
import { messageOf } from '../errors.ts'
import type { Address } from './backup-place.ts'
import { type Extracted, extract } from './extract.ts'
import { topNames } from './format.ts'
import type { Secrets } from './sealing.ts'

export interface RestoreOptions {
  from: Address
  secrets: Secrets
  /** Unpacks the file trees that lie in a directory as a backup contains them. */
  unpackTrees(directory: string): Promise<void>
  onStep(what: string): void
}

const DRAFT = '.restore'
const DATABASE = 'threadbox.db'

/**
 * Makes a new data directory from a backup. Rejects when the directory is not empty, or when anything is wrong with the backup;
 * the directory is then empty again. The next restore removes what an interrupted one has left.
 */
export async function restoreBackup(options: RestoreOptions & { dataDirectory: string }): Promise<Extracted> {
  const { dataDirectory } = options
  const isNew = !existsSync(dataDirectory)
  await mkdir(dataDirectory, { recursive: true, mode: 0o700 })
  const present = (await readdir(dataDirectory)).filter(name => name !== 'lost+found')
  if (!(present.includes(DRAFT) ? present.every(isOfRestore) : present.length === 0)) {
    throw new Error(`--data-dir: ${dataDirectory} is not empty. Choose a new directory; nothing is restored over data`)
  }
  const draft = join(dataDirectory, DRAFT)
  try {
    await removeUnfinished(dataDirectory)
    await mkdir(draft, { mode: 0o700 })
    const extracted = await fill(options, draft)
    await syncTree(draft)
    // The database comes last: until it is there, a restore may begin again.
    const names = (await readdir(draft)).filter(name => name !== DATABASE)
    for (const name of [...names, DATABASE]) await rename(join(draft, name), join(dataDirectory, name))
    await rm(draft, { recursive: true })
    await chmod(dataDirectory, 0o700)
    await syncPath(dataDirectory)
    return extracted
  } catch (error) {
    await rm(join(dataDirectory, DATABASE), { force: true })
    await removeUnfinished(dataDirectory)
    if (isNew) await rm(dataDirectory, { recursive: true, force: true })
    throw error
  }
}

/** Whether a restore may have put a file of this name in its place before the database. */
const isOfRestore = (name: string): boolean => name === DRAFT || (name !== DATABASE && topNames.includes(name))

/** Removes the files of a restore that did not finish. */
async function removeUnfinished(dataDirectory: string): Promise<void> {
  const names = (await readdir(dataDirectory)).filter(isOfRestore)
  // The draft is removed last, because it shows that the other files belong to a restore.
  for (const name of [...names.filter(each => each !== DRAFT), DRAFT])
    await rm(join(dataDirectory, name), { recursive: true, force: true })
}

/** Restores into a temporary directory below `parent`, checks everything, and removes it. */
export async function verifyBackup(
  options: RestoreOptions & { parent: string; checkImages(directory: string): Promise<void> },
): Promise<Extracted> {
  const directory = await mkdtemp(join(options.parent, 'threadbox-verify-'))
  try {
    const extracted = await fill(options, directory)
    options.onStep('checking secrets and disks')
    await naming(options.from, async () => {
      checkSecrets(join(directory, 'threadbox.db'))
      await options.checkImages(directory)
    })
    return extracted
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

async function fill(options: RestoreOptions, directory: string): Promise<Extracted> {
  const { from, secrets, onStep } = options
  onStep('reading the backup')
  const extracted = await extract(from, secrets, directory)
  await naming(from, () => complete(options, directory, extracted))
  return extracted
}

async function naming({ place, name = '' }: Address, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    throw new Error(`${place.describe(name)}: ${messageOf(error)}`)
  }
}

async function complete({ unpackTrees, onStep }: RestoreOptions, directory: string, { manifest }: Extracted) {
  onStep('checking the database')
  const { schemaVersion } = checkDatabase(join(directory, 'threadbox.db'))
  if (schemaVersion !== manifest.schemaVersion) {
    throw new Error(`the database is of schema ${schemaVersion}, and not ${manifest.schemaVersion} as the backup says`)
  }
  onStep('unpacking')
  await unpackTrees(directory)
}
