import { existsSync, lstatSync } from 'node:fs'
import {
  chmod,
  copyFile,
  lstat,
  mkdir,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { syncPath, syncTree } from '../../../src/disk/lasting-files.ts'
import { groupFiles, plainFiles, userFiles } from './etc-files.ts'

/** To be raised when the content of a host base changes. Existing environments keep theirs. */
const VERSION = 2

/** Links into /usr on a merged system. On others they are directories, which are shown read-only like /usr. */
const usrLinks = ['bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32']

const directories = [
  ...['dev', 'etc', 'home/user', 'media', 'mnt', 'opt', 'proc', 'root', 'run/lock', 'srv', 'sys', 'tmp', 'usr'],
  ...['etc/apt/apt.conf.d', 'var/cache/apt/archives/partial', 'var/lib/apt/lists/partial', 'var/lib/dpkg'],
  ...['var/log', 'var/mail', 'var/opt', 'var/spool', 'var/tmp'],
]

/** Entries of the host's /etc that programs need to run. None names the host's users or holds a password. */
const allowed = [
  ...['alternatives', 'ld.so.cache', 'ld.so.conf', 'ld.so.conf.d', 'debian_version', 'os-release', 'localtime'],
  ...['timezone', 'services', 'protocols', 'rpc', 'mime.types', 'magic', 'magic.mime', 'terminfo', 'inputrc'],
  ...['ca-certificates', 'ca-certificates.conf', 'ssl/certs', 'ssl/cert.pem', 'ssl/openssl.cnf', 'crypto-policies'],
  ...['pki/ca-trust/extracted', 'pki/tls/certs', 'pki/tls/cert.pem', 'pki/tls/openssl.cnf', 'locale.alias'],
  ...[
    'bash.bashrc',
    'profile',
    'skel',
    'login.defs',
    'shells',
    'pam.conf',
    'pam.d',
    'security',
    'gai.conf',
    'host.conf',
  ],
  // Not apt.conf.d and auth.conf.d: they may name proxies and passwords.
  ...['apt/sources.list', 'apt/sources.list.d', 'apt/trusted.gpg.d', 'apt/keyrings', 'apt/preferences.d'],
  ...['python3', 'perl', 'vim', 'fonts', 'ImageMagick-6', 'ImageMagick-7', 'R', 'java', 'xml', 'sgml'],
]

/** Families of names: `python3.11`, `java-17-openjdk`. */
const allowedPattern = /^(python3\.\d+|java-\d.*|lua\d.*)$/

/** Directories of the host that environments on the host base see, read-only. */
export function hostDirectories(): string[] {
  const real = usrLinks.map(name => `/${name}`).filter(path => existsSync(path) && lstatSync(path).isDirectory())
  return ['/usr', ...real]
}

/**
 * Makes the lower layer for environments without a root file system of their own: a tree in `parent`, made once for this host's
 * release and owned by the server's user. It holds no file that the host's other users cannot read.
 */
export async function hostBase(parent: string): Promise<string> {
  const path = join(parent, `host-${await fingerprint()}`)
  if (existsSync(path)) return path
  const draft = join(parent, `.draft-${crypto.randomUUID()}`)
  try {
    await seed(draft)
    await syncTree(draft)
    await rename(draft, path)
    await syncPath(parent)
  } catch (error) {
    await rm(draft, { recursive: true, force: true })
    if (!existsSync(path)) throw error
  }
  return path
}

async function fingerprint(): Promise<string> {
  const hash = new Bun.CryptoHasher('sha256').update(`${VERSION}`)
  for (const file of ['/etc/os-release', '/etc/debian_version']) {
    hash.update(await readFile(file).catch(() => Buffer.alloc(0)))
  }
  return hash.digest('hex').slice(0, 12)
}

async function seed(root: string): Promise<void> {
  await makeDirectory(root)
  for (const directory of directories) await makeDirectory(join(root, directory))
  await linkUsr(root)
  const families = (await readdir('/etc')).filter(name => allowedPattern.test(name))
  const names = [...allowed, ...families]
  for (const name of names) await makeDirectory(dirname(join(root, 'etc', name)))
  await all(names.map(name => copy(join('/etc', name), join(root, 'etc', name))))
  await symlink('/run', join(root, 'var/run'))
  await symlink('/run/lock', join(root, 'var/lock'))
  await symlink('/proc/mounts', join(root, 'etc/mtab'))
  for (const [name, content] of Object.entries(plainFiles)) await write(join(root, name), content, 0o644)
  for (const file of [...(await userFiles()), ...(await groupFiles())]) {
    await write(join(root, file.path), file.content, file.mode)
  }
  for (const open of ['tmp', 'var/tmp', 'run/lock']) await chmod(join(root, open), 0o1777)
  await chmod(join(root, 'root'), 0o700)
}

/** Makes the host's links into /usr, and empty directories where the host's own are mounted. */
export async function linkUsr(root: string): Promise<void> {
  for (const name of usrLinks) {
    const kind = await lstat(`/${name}`).catch(() => undefined)
    if (kind?.isSymbolicLink()) await symlink(await readlink(`/${name}`), join(root, name))
    if (kind?.isDirectory()) await makeDirectory(join(root, name))
  }
}

/** Copies links, and directories and files that everyone may read; skips the rest. */
async function copy(source: string, target: string): Promise<void> {
  const kind = await lstat(source).catch(() => undefined)
  if (!kind) return
  if (kind.isSymbolicLink()) return symlink(await readlink(source), target)
  if (kind.isFile() && kind.mode & 0o004) {
    await copyFile(source, target)
    return chmod(target, kind.mode & 0o755)
  }
  if (kind.isDirectory() && kind.mode & 0o001) {
    await makeDirectory(target)
    await all((await readdir(source)).map(name => copy(join(source, name), join(target, name))))
  }
}

/** Waits for every work even if one fails: the caller then removes the tree, and no work may still write to it. */
async function all(works: readonly Promise<void>[]): Promise<void> {
  const failed = (await Promise.allSettled(works)).find(({ status }) => status === 'rejected')
  if (failed?.status === 'rejected') throw failed.reason
}

/** Sets the mode explicitly: the server's umask must not close the tree to the jail's users. */
async function makeDirectory(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true, mode: 0o755 })
  for (let made = path; first !== undefined && made.length >= first.length; made = dirname(made)) {
    await chmod(made, 0o755)
  }
}

async function write(path: string, content: string, mode: number): Promise<void> {
  await writeFile(path, content, { mode })
  await chmod(path, mode)
}
