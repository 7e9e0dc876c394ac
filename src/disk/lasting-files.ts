import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { open, readdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** What is at the path outlasts a loss of power from now on: of a directory, the names in it. */
export async function syncPath(path: string): Promise<void> {
  const file = await open(path, 'r')
  try {
    await file.sync()
  } finally {
    await file.close()
  }
}

/** A directory with all files and directories below it. Links and special files need none. */
export async function syncTree(directory: string): Promise<void> {
  // All at once: the file system then writes its journal a few times and not for each.
  const entries = await readdir(directory, { withFileTypes: true })
  await Promise.all(
    entries.map(async entry => {
      const path = join(directory, entry.name)
      if (entry.isDirectory()) await syncTree(path)
      else if (entry.isFile()) await syncPath(path)
    }),
  )
  await syncPath(directory)
}

/** Writes a small file so that after any crash it is there as it was or as it is now, never in part. */
export function replaceFile(path: string, content: string, mode = 0o600): void {
  const draft = `${path}.${crypto.randomUUID()}`
  try {
    writeFileSync(draft, content, { mode, flag: 'wx', flush: true })
    renameSync(draft, path)
  } catch (error) {
    rmSync(draft, { force: true })
    throw error
  }
  syncNow(dirname(path))
}

/** Writes a file's content, or the names in a directory, to the disk. It blocks the event loop meanwhile. */
export function syncNow(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
