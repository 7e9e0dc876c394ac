import { basename } from 'node:path'
import type { Part } from '../part.ts'
import { findProcesses } from '../process-figures.ts'
import type { BenchServer, SandboxIds } from '../server.ts'
import { runBash } from '../time.ts'
import { deleteAll } from './create.ts'

/** Spares count as ready when no process has been started for this long, since no request shows how many there are. */
const SETTLED_MS = 1500
const PREPARE_MS = 20_000
const LOOK_MS = 100

/** Measures many creates at once, each with its first exec. */
export const burst: Part = {
  rounds: 1,
  async measure({ sizes, place, record, signal }) {
    {
      await using server = await place.serve()
      const { took, failed } = await createAtOnce(server, sizes.burst)
      record('burst', took)
      record('burst-total', [Math.max(...took)])
      record('burst-failed', [failed])
    }
    await using server = await place.serve([], { spares: sizes.spares })
    // The server keeps spares like the sandboxes that were asked for lately.
    await server.delete(await server.create())
    await settle(basename(place.directory), signal)
    const first = (took: readonly number[]) => took.toSorted((a, b) => a - b).slice(0, sizes.spares)
    const bashes = await runBashes(sizes.burst)
    const { took } = await createAtOnce(server, sizes.burst)
    record('burst-spares', first(took), first(bashes))
  },
}

/** Waits until no more processes of a data directory come. */
async function settle(directory: string, signal: AbortSignal): Promise<void> {
  const startedAt = performance.now()
  let last = { count: 0, at: startedAt }
  while (performance.now() - startedAt < PREPARE_MS && performance.now() - last.at < SETTLED_MS) {
    signal.throwIfAborted()
    const count = findProcesses(directory).length
    if (count !== last.count) last = { count, at: performance.now() }
    await Bun.sleep(LOOK_MS)
  }
}

async function createAtOnce(server: BenchServer, count: number): Promise<{ took: number[]; failed: number }> {
  const made: SandboxIds[] = []
  const done = await atOnce(count, async () => {
    const sandbox = await server.create()
    made.push(sandbox)
    await server.exec(sandbox)
  })
  await deleteAll(server, made)
  return done
}

/** Returns when each has ended, in ms from their common beginning. Throws when none succeeds. */
async function atOnce(count: number, work: () => Promise<unknown>): Promise<{ took: number[]; failed: number }> {
  const took: number[] = []
  const startedAt = performance.now()
  const one = async () => {
    await work()
    took.push(performance.now() - startedAt)
  }
  const ended = await Promise.allSettled(Array.from({ length: count }, one))
  const failures = ended.filter(each => each.status === 'rejected')
  // When all fail, the reason is more useful than a count.
  if (failures.length === count) throw failures[0]?.reason
  return { took, failed: failures.length }
}

/** Does what `atOnce` does. A fork blocks this process, so between two forks it looks which commands have ended. */
async function runBashes(count: number): Promise<number[]> {
  const startedAt = performance.now()
  const running: Promise<number>[] = []
  for (let index = 0; index < count; index++) {
    running.push(runBash().then(() => performance.now() - startedAt))
    await new Promise(setImmediate)
  }
  return await Promise.all(running)
}
