import { existsSync } from 'node:fs'
import { link, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { SandboxCopy } from '../../src/plugin-api/index.ts'
import { objectOf } from '../../src/read/json.ts'
import { readAddress, type Variables } from './address.ts'
import { assertRoom, save } from './copy-container.ts'
import { createDataDirectoryId } from './data-directory-id.ts'
import { createEngine } from './engine.ts'
import { copyFiles, readCopy } from './kept-copy.ts'
import { IMAGE_FILE, imageOf, snapshotDirectory } from './snapshot-names.ts'

/**
 * Copies a snapshot: its image, which it asks its engine for, and the volumes that the image declares. Sandboxes of a snapshot have all
 * its layers in copies of their own, so that one which is removed is needed by none.
 */
export async function copySnapshot(
  dataDirectory: string,
  id: string,
  { to, variables, isRemoved }: { to: string; variables: Variables; isRemoved: boolean },
): Promise<SandboxCopy> {
  if (isRemoved) return { files: [] }
  const directory = snapshotDirectory(dataDirectory, id)
  if (!existsSync(directory)) throw new Error('it is being removed')
  const { volumes } = await readCopy(directory)
  const names = copyFiles(volumes.length)
  await mkdir(to, { mode: 0o700 })
  // A snapshot's files do not change, but it may be removed meanwhile.
  for (const name of names) {
    if (existsSync(join(directory, name))) await link(join(directory, name), join(to, name))
  }
  const image = join(to, IMAGE_FILE)
  // The engine gets a restored snapshot only with its first use.
  if (!existsSync(image)) await saveImage(dataDirectory, id, { to: image, variables })
  return { files: names.map(name => ({ name: `docker-snapshots/${id}/${name}`, from: join(to, name) })) }
}

async function saveImage(dataDirectory: string, id: string, { to, variables }: { to: string; variables: Variables }) {
  const engine = createEngine(() => readAddress(variables))
  const dataId = createDataDirectoryId(dataDirectory).find()
  if (dataId === undefined) throw new Error('the data directory has no id on its engine')
  const { Id, Size } = objectOf(await engine.call('GET', `/images/${imageOf(dataId, id)}/json`)) ?? {}
  await assertRoom(join(to, '..'), Number(Size ?? 0))
  // An image that is saved by its id is saved without its name.
  await save(await engine.stream('GET', `/images/${Id}/get`), to)
}
