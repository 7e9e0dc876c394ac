import { mkdir, readdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { sweepBases } from './files/base-store.ts'
import { closeStaging } from './files/staging.ts'
import { erase } from './host/erase.ts'
import {
  getDataDirectoryKey,
  type Host,
  hostBaseDirectory,
  isProbeName,
  preparedDisksDirectory,
  stagingDirectory,
  trashDirectory,
} from './host/layout.ts'
import { detachMount } from './host/linux.ts'
import { removeDeadProbes } from './jail/cgroup.ts'

/** Removes leftovers of servers and doctors that died, besides environments: prepared disks, probes, drafts of bases. */
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
  await mkdir(spare, { mode: 0o700 })
}

/** Erases leftovers of interrupted removals. */
export async function emptyTrash(host: Host): Promise<void> {
  const trash = trashDirectory(host.dataDirectory)
  for (const name of await namesIn(trash)) await erase(join(trash, name))
}

/** Removes the guests of earlier builds. No jail may run, because a jail uses the guest that it was started with. */
export async function eraseOldGuests(current: string): Promise<void> {
  const parent = dirname(current)
  for (const name of await namesIn(parent)) if (name !== basename(current)) await erase(join(parent, name))
}

const namesIn = (directory: string) => readdir(directory).catch(() => [])
