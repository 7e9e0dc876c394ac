import type { Database } from 'bun:sqlite'
import { createHash } from 'node:crypto'
import { renameSync, rmSync } from 'node:fs'
import { mkdir, open, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { createHolds } from '../../async/hold.ts'
import { listBundles } from '../../db/deployments.ts'
import { syncPath } from '../../disk/lasting-files.ts'
import { ApiError, messageOf } from '../../errors.ts'
import type { Bundles, Runtime } from '../runtime.ts'

/** Removes the files that nothing needs. Never rejects: what fails is logged, and tried again the next time. */
export const removeUnusedBundles = ({ bundles, log }: Runtime): Promise<void> =>
  bundles.removeUnused().catch(error => log(`bundles: ${messageOf(error)}`, 'error'))

export function createBundles(db: Database, dataDirectory: string): Bundles {
  const directory = join(dataDirectory, 'bundles')
  const pathOf = (name: string) => join(directory, name)
  const holds = createHolds()
  const hold = (...names: (string | undefined)[]): Disposable => {
    const all = new DisposableStack()
    for (const name of names) if (name !== undefined) all.use(holds.hold(name))
    return all
  }

  return {
    hold,
    async put(field, body, maxBytes) {
      await mkdir(directory, { recursive: true, mode: 0o700 })
      const draft = `upload-${crypto.randomUUID()}`
      using _draft = hold(draft)
      try {
        const { name, byteLength } = await write(field, body, maxBytes, pathOf(draft))
        using held = new DisposableStack()
        held.use(hold(name))
        // Nothing is awaited: the name is held, and there.
        renameSync(pathOf(draft), pathOf(name))
        await syncPath(directory)
        const kept = held.move()
        return {
          ...{ name, byteLength },
          [Symbol.dispose]() {
            kept.dispose()
            if (!holds.has(name) && !listBundles(db).includes(name)) rmSync(pathOf(name), { force: true })
          },
        }
      } catch (error) {
        rmSync(pathOf(draft), { force: true })
        throw error
      }
    },
    size: async name => (await stat(pathOf(name))).size,
    read: name => Bun.file(pathOf(name)).stream(),
    async removeUnused() {
      const names = await readdir(directory).catch(() => [])
      // From here on nothing is awaited: what is not needed now cannot become so meanwhile.
      const needed = new Set([...listBundles(db), ...holds.names()])
      for (const name of names) if (!needed.has(name)) rmSync(pathOf(name), { force: true })
    },
  }
}

/** Writes a file that only its owner can read. What it is to be named. */
async function write(field: string, body: AsyncIterable<Uint8Array>, maxBytes: number, path: string) {
  const hash = createHash('sha256')
  let byteLength = 0
  const file = await open(path, 'wx', 0o600)
  try {
    for await (const chunk of body) {
      byteLength += chunk.byteLength
      if (byteLength > maxBytes) {
        throw new ApiError('payload_too_large', `${field}: more than ${maxBytes} bytes`, { field })
      }
      hash.update(chunk)
      await file.writeFile(chunk)
    }
    await file.sync()
  } finally {
    await file.close()
  }
  return { name: hash.digest('hex'), byteLength }
}
