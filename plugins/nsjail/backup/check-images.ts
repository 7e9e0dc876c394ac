import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { sandboxesDirectory, snapshotsDirectory } from '../host/layout.ts'
import { runProgram, SYSTEM_PATH } from '../host/run-program.ts'

/** Throws when the file system of the disk of a sandbox or snapshot is damaged. Checks nothing where e2fsck is not installed. */
export async function checkImages(dataDirectory: string): Promise<void> {
  const program = Bun.which('e2fsck', { PATH: SYSTEM_PATH })
  if (program === null) return
  for (const directory of [sandboxesDirectory(dataDirectory), snapshotsDirectory(dataDirectory)]) {
    for (const id of existsSync(directory) ? await readdir(directory) : []) {
      const image = join(directory, id, 'disk.img')
      if (!existsSync(image)) continue
      await runProgram([program, '-fn', image], 0).catch(() => {
        throw new Error(`the disk of ${id} is damaged, as e2fsck -fn says`)
      })
    }
  }
}
