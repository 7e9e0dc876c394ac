import { existsSync } from 'node:fs'
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { syncPath } from '../disk/lasting-files.ts'
import type { BackupPlace } from './backup-place.ts'
import { timeOfFile } from './format.ts'

/** The name of an unfinished file: the process that writes it, with its machine, and the final name. */
const PART = /^(\d+)-(.+)$/

/** Backups in a directory, which is made when it is missing. */
export function directoryPlace(directory: string): BackupPlace {
  return {
    describe: name => join(directory, name),
    async list() {
      const names = (await readdir(directory)).filter(name => timeOfFile(name) !== undefined)
      return await Promise.all(
        names.sort().map(async name => ({ name, bytes: (await stat(join(directory, name))).size })),
      )
    },
    async write(name, bytes) {
      await mkdir(directory, { recursive: true, mode: 0o700 })
      await removeDeadParts(directory)
      const path = join(directory, name)
      if (existsSync(path)) throw new Error(`${path} is there already`)
      const part = `${path}.part-${process.pid}-${hostname()}`
      try {
        const written = await writeAll(part, bytes)
        await rename(part, path)
        return written
      } finally {
        await rm(part, { force: true })
        await syncPath(directory)
      }
    },
    read: async name => Bun.file(join(directory, name)).stream(),
    remove: name => rm(join(directory, name)),
  }
}

async function writeAll(path: string, bytes: AsyncIterable<Uint8Array>): Promise<number> {
  // A backup contains the key and all secrets, so only its owner may read it.
  const file = await open(path, 'wx', 0o600)
  try {
    let written = 0
    for await (const piece of bytes) {
      await file.writeFile(piece)
      written += piece.byteLength
    }
    await file.sync()
    return written
  } finally {
    await file.close()
  }
}

/** Removes unfinished files that killed processes of this machine have left. */
async function removeDeadParts(directory: string): Promise<void> {
  for (const name of await readdir(directory)) {
    const [, pid, host] = PART.exec(name.split('.part-')[1] ?? '') ?? []
    if (pid && host === hostname() && !existsSync(`/proc/${pid}`)) await rm(join(directory, name), { force: true })
  }
}
