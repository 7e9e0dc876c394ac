import { mkdir, readdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { sweepBases } from './files/base-store.ts'
import { closeStage } from './files/staging.ts'
import { erase } from './host/erase.ts'
import { baseDirectory, type Ground, isProbe, keyOf, spareDirectory, stageOf, trashDirectory } from './host/layout.ts'
import { detachMount } from './host/linux.ts'
import { removeDeadProbes } from './jail/cgroup.ts'

/** Removes what a server or a doctor that died has left besides environments: spare disks, probes, drafts of bases. */
export async function sweepLeftovers(ground: Ground): Promise<void> {
  const { dataDirectory } = ground
  const spare = spareDirectory(dataDirectory)
  const probes = (await readdir(dataDirectory)).filter(isProbe)
  const drafts = (await namesIn(baseDirectory(dataDirectory))).filter(name => name.startsWith('.'))
  if (ground.root) for (const name of probes) closeStage({ stage: stageOf(keyOf(dataDirectory), name) })
  for (const directory of [spare, ...probes.map(name => join(dataDirectory, name))]) {
    if (ground.root) for (const name of await namesIn(directory)) detachMount(join(directory, name))
    await erase(directory)
  }
  if (ground.root) await removeDeadProbes(dataDirectory)
  await sweepBases(dataDirectory)
  for (const name of drafts) await erase(join(baseDirectory(dataDirectory), name))
  await mkdir(spare, { mode: 0o700 })
}

/** Erases what removals that were cut short have left. */
export async function emptyTrash(ground: Ground): Promise<void> {
  const trash = trashDirectory(ground.dataDirectory)
  for (const name of await namesIn(trash)) await erase(join(trash, name))
}

/** Removes the guests of earlier builds. No jail may run: it shows the one that it was started with. */
export async function eraseOldGuests(current: string): Promise<void> {
  const parent = dirname(current)
  for (const name of await namesIn(parent)) if (name !== basename(current)) await erase(join(parent, name))
}

const namesIn = (directory: string) => readdir(directory).catch(() => [])
