import { lstatSync, readdirSync } from 'node:fs'
import { basename, join } from 'node:path'
import { LeftOut } from '../part.ts'
import type { Place } from '../place.ts'
import { privateMemoryOf, rssOf } from '../process-figures.ts'
import type { Measured } from './rows.ts'
import type { CapacitySizes } from './sizes.ts'

const BLOCK_BYTES = 512

/** Measures what sandboxes add: memory while they run, and disk when they have stopped. */
export async function measureSandboxes(
  place: Place,
  { sandboxes, settleMs }: CapacitySizes,
  measured: Measured,
): Promise<void> {
  await using server = await place.serve([], { spares: 0 })
  await server.ask('GET', '/v1/sandboxes')
  await Bun.sleep(settleMs)
  measured.idle = { value: rssOf(server.pid), n: 1 }
  // The first sandbox brings what all of them share.
  await server.exec(await server.create())
  await Bun.sleep(settleMs)
  const name = basename(place.directory)
  const before = privateMemoryOf(name)
  for (let index = 0; index < sandboxes; index++) await server.exec(await server.create())
  await Bun.sleep(settleMs)
  const after = privateMemoryOf(name)
  if (after.processes < before.processes + sandboxes)
    throw new LeftOut('the processes of sandboxes are found on nsjail only')
  measured.active = { value: (after.mb - before.mb) / sandboxes, n: sandboxes }
  await server.stop()
  const n = sandboxes + 1
  measured.stopped = { value: diskMbOf(join(place.directory, 'sandboxes')) / n, n }
}

/** How much disk all files below a directory use. */
function diskMbOf(directory: string): number {
  let blocks = 0
  for (const path of ['.', ...readdirSync(directory, { recursive: true, encoding: 'utf8' })])
    blocks += lstatSync(join(directory, path), { throwIfNoEntry: false })?.blocks ?? 0
  return (blocks * BLOCK_BYTES) / 1024 ** 2
}
