import type { Part } from '../part.ts'
import type { Place } from '../place.ts'
import type { SandboxIds } from '../server.ts'
import { startSleeper } from '../sleeper.ts'
import { time, times } from '../time.ts'
import { deleteAll } from './create.ts'

const IDLE_MS = 300

/** Measures the first use of sandboxes that idleness has stopped, next to creates for which nothing is prepared. */
export const stopped: Part = {
  rounds: 2,
  async measure({ sizes, place, record, signal }) {
    const creates = await createCold(place, sizes.stopped)
    await using server = await place.serve(['--idle-ms', `${IDLE_MS}`])
    const uses: number[] = []
    for (let index = 0; index < sizes.stopped; index++) {
      const sandbox = await server.create()
      const sleeper = await startSleeper(server, sandbox)
      await sleeper.ended(signal)
      uses.push(await time(() => server.exec(sandbox)))
      await server.delete(sandbox)
    }
    record('use-stopped', uses, creates)
  },
}

async function createCold(place: Place, count: number): Promise<number[]> {
  await using server = await place.serve([], { spares: 0 })
  const made: SandboxIds[] = []
  await server.delete(await server.create())
  const took = await times(count, async () => {
    const sandbox = await server.create()
    made.push(sandbox)
    await server.exec(sandbox)
  })
  await deleteAll(server, made)
  return took
}
