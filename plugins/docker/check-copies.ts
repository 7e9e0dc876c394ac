import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf } from '../../src/errors.ts'
import { copiesDirectory, copyFiles, readCopy } from './kept-copy.ts'
import { readImage } from './load-image.ts'
import { IMAGE_FILE, snapshotsDirectory } from './snapshot-names.ts'

/** Throws when what a backup has of a sandbox or snapshot on docker lacks something, or has an image that is not whole. */
export async function checkCopies(dataDirectory: string): Promise<void> {
  for (const parent of [copiesDirectory(dataDirectory), snapshotsDirectory(dataDirectory)]) {
    for (const id of existsSync(parent) ? await readdir(parent) : []) {
      await check(join(parent, id)).catch(error => {
        throw new Error(`${id} is damaged: ${messageOf(error)}`)
      })
    }
  }
}

async function check(directory: string): Promise<void> {
  const { volumes } = await readCopy(directory)
  const missing = copyFiles(volumes.length).find(name => !existsSync(join(directory, name)))
  if (missing !== undefined) throw new Error(`it has no ${missing}`)
  await readImage(join(directory, IMAGE_FILE))
}
