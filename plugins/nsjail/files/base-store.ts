import { existsSync } from 'node:fs'
import { mkdir, readdir, realpath, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { syncPath } from '../../../src/disk/lasting-files.ts'
import { readTar } from '../../../src/disk/read-tar.ts'
import { isSafeId } from '../../../src/guest/host/guest-backend.ts'
import { erase } from '../host/erase.ts'
import {
  getEnvironmentPaths,
  getSnapshotPaths,
  namedBasesDirectory,
  sandboxesDirectory,
  snapshotsDirectory,
} from '../host/layout.ts'
import { readRecord } from '../host/record.ts'
import { runProgram } from '../host/run-program.ts'
import { isSpare } from '../host/spare-mark.ts'
import { decompress } from './decompress.ts'
import { findFlaw, isBaseName } from './resolve-base.ts'
import { unpack } from './unpack.ts'

/** Root file systems of a data directory that sandboxes can start from, each under a name. */
export interface Bases {
  /**
   * Unpacks a tarball (plain, gzip, xz or zstd). The name is there once all of it is; a rejected call leaves nothing
   * under it. As root, owners are kept.
   */
  add(name: string, tarball: AsyncIterable<Uint8Array>): Promise<void>
  /** By name, each with the number of sandboxes that use it. */
  list(): Promise<{ name: string; sandboxes: number }[]>
  /** Rejects while a sandbox uses it. */
  remove(name: string): Promise<void>
}

/** Works beside a server on the same data directory. */
export function openBases(dataDirectory: string): Bases {
  const parent = namedBasesDirectory(dataDirectory)
  const pathOf = (name: string) => {
    if (!isBaseName(name)) {
      throw new Error(`${JSON.stringify(name)} cannot be a base's name: letters, digits, dots, hyphens and underscores`)
    }
    return join(parent, name)
  }
  /** Records have real paths. */
  const usersOf = async (name: string) => {
    const path = join(await realpath(parent), name)
    return (await listUsedBases(dataDirectory)).filter(used => used === path).length
  }

  return {
    async add(name, tarball) {
      const path = pathOf(name)
      const taken = () => new Error(`There is a base ${name} already. Remove it first, or choose another name.`)
      if (existsSync(path)) throw taken()
      await mkdir(parent, { recursive: true, mode: 0o700 })
      await sweepBases(dataDirectory)
      const draft = join(parent, newDraft())
      try {
        await mkdir(draft, { mode: 0o700 })
        await unpack(readTar(decompress(tarball)), draft, { keepsOwners: process.geteuid?.() === 0 })
        const flaw = findFlaw(draft)
        if (flaw) throw new Error(`it ${flaw}. Use what docker export or debootstrap makes`)
        // A loss of power must not leave a name whose files are not on the disk.
        await runProgram(['sync', '-f', draft], 0).catch(() => {})
        // Fails when another add was faster: rename does not replace a directory that is not empty.
        await rename(draft, path).catch(error => {
          throw existsSync(path) ? taken() : error
        })
        await syncPath(parent)
      } catch (error) {
        await erase(draft)
        throw error
      }
    },

    async list() {
      const names = await listBaseNames(dataDirectory)
      return Promise.all(names.map(async name => ({ name, sandboxes: await usersOf(name) })))
    },

    async remove(name) {
      const path = pathOf(name)
      if (!existsSync(path)) throw new Error(`There is no base ${name}.`)
      const inUse = (count: number) =>
        new Error(`${count} ${count === 1 ? 'sandbox uses' : 'sandboxes use'} the base ${name}: delete them first.`)
      const users = await usersOf(name)
      if (users > 0) throw inUse(users)
      const draft = join(parent, newDraft())
      await rename(path, draft)
      // A new sandbox checks its base after its record is written: one of the two notices the other.
      const late = await usersOf(name)
      if (late > 0) {
        await rename(draft, path)
        throw inUse(late)
      }
      await erase(draft)
    },
  }
}

/** The names of the bases that were added, sorted. */
export const listBaseNames = async (dataDirectory: string): Promise<string[]> =>
  (await readdir(namedBasesDirectory(dataDirectory)).catch(() => [])).filter(isBaseName).sort()

const newDraft = () => `.draft-${process.pid}-${crypto.randomUUID()}`

/** Erases drafts of interrupted adds and removals, unless their process still runs. */
export async function sweepBases(dataDirectory: string): Promise<void> {
  const parent = namedBasesDirectory(dataDirectory)
  for (const name of await readdir(parent).catch(() => [])) {
    const [, pid] = /^\.draft-(\d+)-/.exec(name) ?? []
    if (pid && !existsSync(`/proc/${pid}`)) await erase(join(parent, name))
  }
}

/** Lists the base of each sandbox and snapshot, spares aside. Undefined for a damaged record, whose sandbox cannot start. */
async function listUsedBases(dataDirectory: string): Promise<(string | undefined)[]> {
  const ids = (await readdir(sandboxesDirectory(dataDirectory)).catch(() => [])).filter(isSafeId)
  const snapshots = (await readdir(snapshotsDirectory(dataDirectory)).catch(() => [])).filter(isSafeId)
  const baseOf = (paths: Parameters<typeof readRecord>[0]) =>
    readRecord(paths).then(
      record => record?.base,
      () => undefined,
    )
  return Promise.all([
    ...ids.map(async id => {
      const paths = getEnvironmentPaths(dataDirectory, id)
      return (await isSpare(paths)) ? undefined : await baseOf(paths)
    }),
    ...snapshots.map(id => baseOf(getSnapshotPaths(dataDirectory, id))),
  ])
}
