import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { copySandboxes } from '../../db/copy-sandboxes.ts'
import { newId } from '../../db/id.ts'
import { objectOf, parseJson } from '../../read/json.ts'
import { LeftOut } from './part.ts'
import type { Place } from './place.ts'
import { startSleeper } from './sleeper.ts'

/** The file that describes an environment. Only the environment's disk is large. */
const RECORD = 'meta.json'
const DISK = 'disk.img'

/**
 * Fills a data directory with stopped nsjail sandboxes: a server makes one, and its record, its disk (by a link) and its row are
 * copied. Making all of them would take longer than the rest of the bench. Returns a function that removes the copies.
 */
export async function fillPlace(place: Place, count: number, signal: AbortSignal): Promise<() => Promise<void>> {
  const { id, sandboxId } = await makeStopped(place, signal)
  const sandboxes = join(place.directory, 'sandboxes')
  const record = await readFile(join(sandboxes, sandboxId, RECORD), 'utf8').catch(() => undefined)
  if (record === undefined) throw new LeftOut('sandboxes are copied on nsjail only')
  const copies = Array.from({ length: count - 1 }, () => newId('env'))
  const remove = async () => {
    for (const each of copies) await rm(join(sandboxes, each), { recursive: true, force: true })
  }
  try {
    for (const [index, each] of copies.entries()) {
      await mkdir(join(sandboxes, each), { mode: 0o700 })
      // Each copy has its own user ids.
      const own = { ...objectOf(parseJson(record)), id: each, slot: index + 1 }
      await writeFile(join(sandboxes, each, RECORD), JSON.stringify(own), { mode: 0o600 })
      await link(join(sandboxes, sandboxId, DISK), join(sandboxes, each, DISK))
    }
    copySandboxes(join(place.directory, 'threadbox.db'), id, copies)
    return remove
  } catch (error) {
    await remove()
    throw error
  }
}

async function makeStopped(place: Place, signal: AbortSignal): Promise<{ id: string; sandboxId: string }> {
  await using server = await place.serve(['--idle-ms', '200'])
  const sandbox = await server.create()
  const sleeper = await startSleeper(server, sandbox)
  await sleeper.ended(signal)
  return sandbox
}
