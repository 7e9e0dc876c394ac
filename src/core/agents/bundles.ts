import type { Database } from 'bun:sqlite'
import { createHash } from 'node:crypto'
import { renameSync, rmSync } from 'node:fs'
import { mkdir, open, readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { listBundles } from '../../db/deployments.ts'
import { syncPath } from '../../disk/lasting-files.ts'
import { ApiError, messageOf } from '../../errors.ts'

/** What deployed agents bring as files, each named by the hash of what is in it. A file is there wholly or not at all. */
export interface Bundles {
  /** Takes at most so many bytes. Throws payload_too_large that names the field. */
  put(field: string, body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<Stored>
  /** Keeps files from being removed for as long as it is held. */
  hold(...names: (string | undefined)[]): Disposable
  size(name: string): Promise<number>
  read(name: string): ReadableStream<Uint8Array>
  /** Removes what no version and no sandbox needs, and what an upload that was cut off has left. */
  removeUnused(): Promise<void>
}

/** A file that is kept until it is disposed of; then it is removed, unless something needs it. */
export interface Stored extends Disposable {
  name: string
  byteLength: number
}

/** Removes the files that nothing needs. Never rejects: what fails is logged, and tried again the next time. */
export const removeUnusedBundles = ({ bundles, log }: { bundles: Bundles; log: LogError }): Promise<void> =>
  bundles.removeUnused().catch(error => log(`bundles: ${messageOf(error)}`, 'error'))

type LogError = (line: string, level: 'error') => void

export function createBundles(db: Database, dataDirectory: string): Bundles {
  const directory = join(dataDirectory, 'bundles')
  const pathOf = (name: string) => join(directory, name)
  const holds = new Map<string, number>()

  const hold = (...names: (string | undefined)[]): Disposable => {
    const held = new Set(names.filter(name => name !== undefined))
    for (const name of held) holds.set(name, (holds.get(name) ?? 0) + 1)
    return {
      [Symbol.dispose]() {
        for (const name of held) {
          const left = (holds.get(name) ?? 0) - 1
          if (left > 0) holds.set(name, left)
          else holds.delete(name)
        }
        held.clear()
      },
    }
  }

  return {
    hold,
    async put(field, body, maxBytes) {
      await mkdir(directory, { recursive: true, mode: 0o700 })
      const draft = `upload-${crypto.randomUUID()}`
      using _draft = hold(draft)
      try {
        const { name, byteLength } = await write(field, body, maxBytes, pathOf(draft))
        const held = hold(name)
        // Nothing is awaited: the name is held, and there.
        renameSync(pathOf(draft), pathOf(name))
        await syncPath(directory)
        return {
          ...{ name, byteLength },
          [Symbol.dispose]() {
            held[Symbol.dispose]()
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
      const needed = new Set([...listBundles(db), ...holds.keys()])
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
