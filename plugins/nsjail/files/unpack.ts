import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  futimesSync,
  lchownSync,
  linkSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  openSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import type { TarEntry } from '../../../src/disk/read-tar.ts'

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants

/**
 * Writes the members of an archive into an empty directory that nobody else can write. Nothing is made or linked
 * outside of it: a name with `..` or through a link is refused. Devices and FIFOs are left out. Throws an error that
 * names the member.
 */
export async function unpack(
  entries: AsyncIterable<TarEntry>,
  root: string,
  { keepsOwners }: { keepsOwners: boolean },
): Promise<void> {
  const directories = new Map<string, Pick<TarEntry, 'mode' | 'modified'> | undefined>()

  const makeDirectory = (path: string) => {
    if (directories.has(path)) return
    const kind = lstatSync(join(root, path), { throwIfNoEntry: false })
    if (kind && !kind.isDirectory()) throw new Error(`${path} is not a directory`)
    // Its own mode is set at the end, when all members are written.
    if (!kind) mkdirSync(join(root, path), { mode: 0o755 })
    directories.set(path, undefined)
  }

  /** Makes a member's parents and returns its path relative to the root; empty for the root itself. */
  const resolveMember = (name: string): string => {
    const parts = name.split('/').filter(part => part !== '' && part !== '.')
    if (parts.includes('..')) throw new Error('it leads outside of the archive')
    for (let depth = 1; depth < parts.length; depth++) makeDirectory(parts.slice(0, depth).join('/'))
    return parts.join('/')
  }

  const write = async (entry: TarEntry) => {
    const relative = resolveMember(entry.name)
    const path = join(root, relative)
    if (entry.type === 'directory') {
      if (relative !== '') removeOld(path, 'directory')
      makeDirectory(relative)
      directories.set(relative, entry)
      if (keepsOwners) chownSync(path, entry.uid, entry.gid)
      return
    }
    if (relative === '') throw new Error('it replaces the whole tree')
    if (entry.type === 'special') return
    const target = entry.type === 'hardlink' ? resolveMember(entry.linkName) : ''
    if (entry.type === 'hardlink' && target === relative) return
    removeOld(path, entry.type)
    if (entry.type === 'symlink') {
      symlinkSync(entry.linkName, path)
      lutimesSync(path, entry.modified, entry.modified)
      if (keepsOwners) lchownSync(path, entry.uid, entry.gid)
    } else if (entry.type === 'hardlink') {
      linkSync(join(root, target), path)
    } else {
      await writeFile(path, entry, keepsOwners)
    }
  }

  makeDirectory('')
  for await (const entry of entries) {
    try {
      await write(entry)
    } catch (error) {
      throw new Error(`${JSON.stringify(entry.name)}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  // The deepest first: a directory that its owner may not enter hides the ones below it.
  for (const [path, member] of [...directories].sort(([a], [b]) => b.length - a.length)) {
    chmodSync(join(root, path), member?.mode ?? 0o755)
    if (member) utimesSync(join(root, path), member.modified, member.modified)
  }
}

/** Removes the file of an earlier member of the same name; a directory stays. */
function removeOld(path: string, next: TarEntry['type']): void {
  const kind = lstatSync(path, { throwIfNoEntry: false })
  if (!kind || (kind.isDirectory() && next === 'directory')) return
  if (kind.isDirectory()) throw new Error('an earlier member made it a directory')
  rmSync(path)
}

async function writeFile(path: string, entry: TarEntry, keepsOwners: boolean): Promise<void> {
  const file = openSync(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600)
  try {
    for await (const piece of entry.body) {
      for (let at = 0; at < piece.byteLength; ) at += writeSync(file, piece, at)
    }
    // The owner first: a change of owner clears the setuid bit.
    if (keepsOwners) fchownSync(file, entry.uid, entry.gid)
    fchmodSync(file, entry.mode)
    futimesSync(file, entry.modified, entry.modified)
  } finally {
    closeSync(file)
  }
}
