import { chmod, copyFile, link, mkdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { syncPath, syncTree } from '../../disk/lasting-files.ts'
import { objectOf, parseJson } from '../../read/json.ts'

const GUEST = 'threadbox'

/** SHA-256 of each library, by its name. */
const DIGESTS = 'digests.json'

/**
 * Fills a directory with what a guest needs to run on any Linux: this executable, and the loader and libraries that it
 * runs with here. Idempotent; a half-made directory is never left under the name, and one that is not as it was made, as after a
 * loss of power, is made again.
 */
export async function installGuest(directory: string, executable: string): Promise<void> {
  if (await stat(directory).catch(() => undefined)) {
    if (await isWhole(directory, executable)) return
    // Jails that run keep what they show. It is erased with the guests of earlier builds.
    await rename(directory, `${directory}.damaged-${crypto.randomUUID()}`)
  }
  const making = `${directory}.${process.pid}`
  await rm(making, { recursive: true, force: true })
  await mkdir(making, { recursive: true, mode: 0o755 })
  await bring(executable, join(making, GUEST))
  const digests: Record<string, string> = {}
  for (const library of await loadedLibraries()) {
    const name = basename(library)
    await bring(library, join(making, name), { copy: true })
    digests[name] = await digestOf(join(making, name))
  }
  await writeFile(join(making, DIGESTS), JSON.stringify(digests), { mode: 0o644 })
  await chmod(making, 0o755)
  await syncTree(making)
  await rename(making, directory).catch(async error => {
    await rm(making, { recursive: true, force: true })
    // Another server was faster.
    if (!(await stat(directory).catch(() => undefined))) throw error
  })
  await syncPath(dirname(directory))
}

async function isWhole(directory: string, executable: string): Promise<boolean> {
  try {
    const guest = join(directory, GUEST)
    const [own, its] = await Promise.all([stat(executable), stat(guest)])
    const isLink = own.dev === its.dev && own.ino === its.ino
    if (!isLink && (own.size !== its.size || (await digestOf(guest)) !== (await digestOf(executable)))) return false
    const digests = Object.entries(objectOf(parseJson(await readFile(join(directory, DIGESTS), 'utf8'))) ?? {})
    if (!digests.some(([name]) => name === loaderName)) return false
    for (const [name, digest] of digests) if ((await digestOf(join(directory, name))) !== digest) return false
    return true
  } catch {
    return false
  }
}

/** Returns the SHA-256 of a file. */
export async function digestOf(path: string): Promise<string> {
  const hash = new Bun.CryptoHasher('sha256')
  for await (const chunk of Bun.file(path).stream()) hash.update(chunk)
  return hash.digest('hex')
}

/** Names an installation: another build of the executable gets another directory. */
export async function guestVersion(executable: string): Promise<string> {
  const { size, mtimeMs } = await stat(executable)
  return `${size.toString(36)}-${Math.floor(mtimeMs).toString(36)}`
}

/** How this executable is run inside, where the directory is mounted; its own arguments follow. */
export const executableInside = (mountedAt: string): string[] => [
  join(mountedAt, loaderName),
  '--library-path',
  mountedAt,
  join(mountedAt, GUEST),
]

/** The command that starts the guest, seen from inside. */
export const guestCommand = (mountedAt: string): string[] => [...executableInside(mountedAt), 'guest']

export const loaderName = process.arch === 'arm64' ? 'ld-linux-aarch64.so.1' : 'ld-linux-x86-64.so.2'

const guestLibraries = /^(ld-linux.*|lib(c|m|dl|pthread|rt|gcc_s|stdc\+\+))\.so\.\d+$/

/** The loader and the C library's parts as this process has them mapped. */
async function loadedLibraries(): Promise<string[]> {
  const maps = await readFile('/proc/self/maps', 'utf8')
  const mapped = new Set(maps.split('\n').map(line => line.slice(line.indexOf('/'))))
  const found = [...mapped].filter(path => path.startsWith('/') && guestLibraries.test(basename(path)))
  const loader = found.find(path => basename(path) === loaderName)
  if (!loader) throw new Error(`${loaderName} is not among this process's mappings`)
  const libc = found.find(path => basename(path) === 'libc.so.6')
  if (!libc) throw new Error(`libc.so.6 is not beside ${dirname(loader)}`)
  return found
}

async function bring(from: string, to: string, { copy = false } = {}): Promise<void> {
  const isReadable = ((await stat(from)).mode & 0o555) === 0o555
  // A link costs no space, but only if everyone may execute the file as it is.
  if (copy || !isReadable || !(await linked(from, to))) {
    await copyFile(from, to)
    if (basename(to) === loaderName) await writeFile(to, withoutPreload(await readFile(to)))
    await chmod(to, 0o755)
  }
}

/** The loader would bring whatever a sandbox names in its own /etc into the guest. So its path is replaced by one of equal length that never exists. */
export function withoutPreload(loader: Buffer): Buffer {
  const [name, nothing] = ['/etc/ld.so.preload\0', '/dev/null/.preload\0']
  for (let at = loader.indexOf(name); at >= 0; at = loader.indexOf(name)) loader.write(nothing, at, 'latin1')
  return loader
}

const linked = (from: string, to: string): Promise<boolean> =>
  link(from, to).then(
    () => true,
    () => false,
  )
