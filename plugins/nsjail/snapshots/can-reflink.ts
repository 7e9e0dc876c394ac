import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { runProgram } from '../host/run-program.ts'

/** Whether files of a directory can share blocks until one of them is written. */
export async function canReflink(directory: string): Promise<boolean> {
  const [from, to] = ['from', 'to'].map(end => join(directory, `${crypto.randomUUID()}.${end}`)) as [string, string]
  try {
    await writeFile(from, 'threadbox')
    await runProgram(['cp', '--reflink=always', '--', from, to])
    return true
  } catch {
    return false
  } finally {
    await Promise.all([from, to].map(path => rm(path, { force: true })))
  }
}
