import { mkdir, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { erase } from './erase.ts'
import { baseDirectory, type Ground, isProbe, spareDirectory, stageOf } from './layout.ts'
import { detachMount } from './linux.ts'
import { closeStage } from './stage.ts'

/** Removes what a server or a doctor that died has left besides environments: spare disks, probes, drafts of bases. */
export async function sweepLeftovers(ground: Ground): Promise<void> {
  const { dataDirectory } = ground
  const spare = spareDirectory(dataDirectory)
  const probes = (await readdir(dataDirectory)).filter(isProbe)
  const drafts = (await namesIn(baseDirectory(dataDirectory))).filter(name => name.startsWith('.'))
  if (ground.root) for (const name of probes) closeStage({ stage: stageOf(name) })
  for (const directory of [spare, ...probes.map(name => join(dataDirectory, name))]) {
    if (ground.root) for (const name of await namesIn(directory)) detachMount(join(directory, name))
    await erase(directory)
  }
  for (const name of drafts) await erase(join(baseDirectory(dataDirectory), name))
  await mkdir(spare, { mode: 0o700 })
}

const namesIn = (directory: string) => readdir(directory).catch(() => [])
