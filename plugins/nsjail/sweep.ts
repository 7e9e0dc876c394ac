import { existsSync } from 'node:fs'
import { mkdir, readdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { messageOf } from '../../src/errors.ts'
import { isSafeId } from '../../src/guest/host/guest-backend.ts'
import type { BackendContext } from './context.ts'
import { sweepBases } from './files/base-store.ts'
import { closeStaging } from './files/staging.ts'
import { erase } from './host/erase.ts'
import {
  environmentOfTrash,
  getDataDirectoryKey,
  getEnvironmentPaths,
  type Host,
  hostBaseDirectory,
  isProbeName,
  isSnapshotDraft,
  preparedDisksDirectory,
  snapshotsDirectory,
  stagingDirectory,
  trashDirectory,
} from './host/layout.ts'
import { detachMount } from './host/linux.ts'
import { removeDeadProbes } from './jail/cgroup.ts'
import { clearCgroups, eraseFiles } from './remove.ts'

/** Removes leftovers of servers and doctors that died, besides environments: prepared disks, probes, drafts of bases and snapshots. */
export async function sweepLeftovers(host: Host): Promise<void> {
  const { dataDirectory } = host
  const spare = preparedDisksDirectory(dataDirectory)
  const probes = (await readdir(dataDirectory)).filter(isProbeName)
  const drafts = (await namesIn(hostBaseDirectory(dataDirectory))).filter(name => name.startsWith('.'))
  if (host.isRoot)
    for (const name of probes) closeStaging({ staging: stagingDirectory(getDataDirectoryKey(dataDirectory), name) })
  for (const directory of [spare, ...probes.map(name => join(dataDirectory, name))]) {
    if (host.isRoot) for (const name of await namesIn(directory)) detachMount(join(directory, name))
    await erase(directory)
  }
  if (host.isRoot) await removeDeadProbes(dataDirectory)
  await sweepBases(dataDirectory)
  for (const name of drafts) await erase(join(hostBaseDirectory(dataDirectory), name))
  const snapshots = snapshotsDirectory(dataDirectory)
  for (const name of (await namesIn(snapshots)).filter(isSnapshotDraft)) await erase(join(snapshots, name))
  await mkdir(spare, { mode: 0o700 })
}

/** Goes on with the removals that an earlier server did not end, one after the other. `removals` has all of them at once. */
export async function resumeRemovals({ host, removals }: Pick<BackendContext, 'host' | 'removals'>): Promise<void> {
  const trash = trashDirectory(host.dataDirectory)
  let last = Promise.resolve()
  for (const name of await namesIn(trash)) {
    const id = environmentOfTrash(name)
    last = last.then(() => finishRemoval(host, id, join(trash, name)))
    const work = last.finally(() => removals.get(id) === work && removals.delete(id))
    removals.set(id, work)
  }
}

async function finishRemoval(host: Host, id: string, trash: string): Promise<void> {
  try {
    if (host.isRoot && isSafeId(id)) {
      const paths = getEnvironmentPaths(host.dataDirectory, id)
      // Another environment may have the id by now.
      if (!existsSync(paths.directory)) await clearCgroups(paths)
    }
    await eraseFiles(trash)
  } catch (error) {
    host.log(`erasing ${trash}: ${messageOf(error)}`)
  }
}

/** Removes the guests of earlier builds. No jail may run, because a jail uses the guest that it was started with. */
export async function eraseOldGuests(current: string): Promise<void> {
  const parent = dirname(current)
  for (const name of await namesIn(parent)) if (name !== basename(current)) await erase(join(parent, name))
}

const namesIn = (directory: string) => readdir(directory).catch(() => [])
