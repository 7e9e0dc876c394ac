import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { syncPath } from '../../disk/lasting-files.ts'

/** Writes a file and prints that, unless it has this text already. True when it was changed. */
export async function installText(path: string, text: string, mode: number): Promise<boolean> {
  const isSame = (await readText(path)) === text
  if (!isSame) await replace(path, temporary => writeFile(temporary, text, { mode }))
  await chmod(path, mode)
  console.log(`${isSame ? 'unchanged' : 'written  '} ${path}`)
  return !isSame
}

/** Installs this executable in the same way. */
export async function installExecutable(path: string): Promise<boolean> {
  if (!import.meta.dir.startsWith('/$bunfs/')) throw new Error('service: run the built executable')
  const isSame = (await hashFile(path)) === (await hashFile(process.execPath))
  if (!isSame) await replace(path, temporary => Bun.write(temporary, Bun.file(process.execPath)))
  await chmod(path, 0o755)
  console.log(`${isSame ? 'unchanged' : 'written  '} ${path}`)
  return !isSame
}

/** Replaces a file in one step. Processes that run from the old file go on. */
async function replace(path: string, write: (temporary: string) => Promise<unknown>): Promise<void> {
  const temporary = `${path}.${process.pid}`
  await mkdir(dirname(path), { recursive: true })
  await write(temporary)
  await syncPath(temporary)
  await rename(temporary, path)
}

async function hashFile(path: string): Promise<string | undefined> {
  const file = Bun.file(path)
  if (!(await file.exists())) return undefined
  const hasher = new Bun.CryptoHasher('sha256')
  for await (const chunk of file.stream()) hasher.update(chunk)
  return hasher.digest('hex')
}

/** Undefined when there is no such file. */
export const readText = (path: string): Promise<string | undefined> =>
  readFile(path, 'utf8').catch(error => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined
    throw error
  })
