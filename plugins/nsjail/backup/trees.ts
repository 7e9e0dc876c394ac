import { existsSync } from 'node:fs'
import { mkdir, readdir, rm } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { isSafeId } from '../../../src/guest/host/guest-backend.ts'
import { isBaseName } from '../files/resolve-base.ts'
import {
  getEnvironmentPaths,
  getSnapshotPaths,
  hostBaseDirectory,
  namedBasesDirectory,
  realDataDirectory,
  sandboxesDirectory,
  snapshotsDirectory,
} from '../host/layout.ts'
import { readRecord } from '../host/record.ts'
import { runProgram } from '../host/run-program.ts'

const keepAll = ['--numeric-owner', '--xattrs', '--xattrs-include=*']

/** Lists the file trees that sandboxes start from, relative to the data directory: the named ones, and those made of the host. */
export async function listBaseTrees(dataDirectory: string): Promise<string[]> {
  const named = await namesIn(namedBasesDirectory(dataDirectory))
  const host = await namesIn(hostBaseDirectory(dataDirectory))
  return [
    ...named.filter(isBaseName).map(name => `bases/${name}`),
    ...host.filter(isBaseName).map(name => `base/${name}`),
  ]
}

/** Packs a base into a tarball that is the same for the same files. */
export async function packBase(dataDirectory: string, tree: string, archive: string): Promise<void> {
  await packTree(join(dataDirectory, tree), archive)
}

/** Packs a directory that does not change. As root of a namespace an ordinary user can read all that belongs to it. */
export async function packTree(directory: string, archive: string): Promise<void> {
  const tar = ['tar', '-C', directory, '--sort=name', ...keepAll, '-cf', archive, '.']
  await runProgram(tar, 0).catch(error => {
    if (process.geteuid?.() === 0) throw error
    return runProgram(['unshare', '-r', ...tar], 0)
  })
}

/** The base of a sandbox that is a directory of the operator, outside of the data directory. Undefined when it is inside. */
export async function findForeignBase(dataDirectory: string, id: string): Promise<string | undefined> {
  const real = realDataDirectory(dataDirectory)
  const record = await readRecord(getEnvironmentPaths(real, id))
  return record && !record.base.startsWith(`${real}/`) ? record.base : undefined
}

/**
 * Makes a data directory whose bases and sandboxes lie in it as tarballs, as a backup has them, what it was. Throws when a tarball
 * would write beside its place, and when sandboxes were made by a server of root and this one is not, or the reverse.
 */
export async function unpackTrees(dataDirectory: string): Promise<void> {
  for (const parent of [namedBasesDirectory(dataDirectory), hostBaseDirectory(dataDirectory)]) {
    for (const name of await namesIn(parent)) {
      if (name.endsWith('.tar')) await unpackTree(join(parent, name), join(parent, basename(name, '.tar')), 0o755)
    }
  }
  const idsIn = async (directory: string) => (await namesIn(directory)).filter(isSafeId)
  for (const paths of [
    ...(await idsIn(sandboxesDirectory(dataDirectory))).map(id => getEnvironmentPaths(dataDirectory, id)),
    ...(await idsIn(snapshotsDirectory(dataDirectory))).map(id => getSnapshotPaths(dataDirectory, id)),
  ]) {
    const record = await readRecord(paths)
    if (!record) throw new Error(`${paths.id} has no record`)
    const isRoots = record.userIdRange !== undefined
    if (isRoots !== (process.geteuid?.() === 0)) {
      throw new Error(
        `its sandboxes were made by a server of ${isRoots ? 'root: restore it as root' : 'an ordinary user: restore it as one'}`,
      )
    }
    const box = join(paths.directory, 'box.tar')
    if (existsSync(box)) await unpackTree(box, paths.diskDirectory, 0o711)
  }
}

async function unpackTree(archive: string, to: string, mode: number): Promise<void> {
  await mkdir(to, { mode })
  await runProgram(['tar', '-C', to, '-xpf', archive, owners(), ...keepAll], 0)
  await rm(archive)
}

/** A server without root owns all files of its sandboxes. After a restore its own user owns them, also when another user made them. */
const owners = () => (process.geteuid?.() === 0 ? '--same-owner' : '--no-same-owner')

const namesIn = (directory: string) => readdir(directory).catch(() => [])
