import type { Part } from '../part.ts'
import { alternate, rate, runBash, time, times } from '../time.ts'

const IDLE_MS = 250
const AT_ONCE = 50

/** Measures commands in a running sandbox, next to the same commands without one. */
export const exec: Part = {
  rounds: 3,
  async measure({ sizes, place, record }) {
    await using server = await place.serve()
    const sandbox = await server.create()
    const run = () => server.exec(sandbox)
    await times(20, run)
    await times(20, runBash)

    const [bashes, execs] = await alternate(sizes.execs, runBash, run)
    record('exec', execs, bashes)

    const [idleBashes, idleExecs]: [number[], number[]] = [[], []]
    for (let turn = 0; turn < sizes.idleTurns; turn++) {
      await Bun.sleep(IDLE_MS)
      idleBashes.push(await time(runBash))
      await Bun.sleep(IDLE_MS)
      idleExecs.push(await time(run))
    }
    record('exec-idle', idleExecs, idleBashes)

    const bashRate = await rate(sizes.parallelExecs, AT_ONCE, runBash)
    record('exec-parallel', [await rate(sizes.parallelExecs, AT_ONCE, run)], [bashRate])
    await server.delete(sandbox)
  },
}
