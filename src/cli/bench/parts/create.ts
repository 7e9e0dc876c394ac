import type { Part, Round } from '../part.ts'
import type { BenchServer, SandboxIds } from '../server.ts'
import { startSleeper } from '../sleeper.ts'
import { runBash, time, times } from '../time.ts'

const APART_MS = 250
const BASHES = 20

/** Measures sandboxes one after the other: made, used, deleted. */
export const create: Part = {
  rounds: 2,
  async measure(round) {
    const { sizes, place, record } = round
    await using server = await place.serve()
    const { answers, firsts, bashes } = await createApart(server, sizes.spacedCreates)
    record('create-spaced', firsts, bashes)
    record('create-answer', answers, bashes)

    const made: SandboxIds[] = []
    const inRow = await times(sizes.createsInRow, () => createAndExec(server, made))
    record('create-row', inRow, await times(BASHES, runBash))
    await deleteAll(server, made)

    await measureDelete(round, server)
  },
}

/** Makes sandboxes 250 ms apart and deletes them. A first one is not counted, since it may bring what later ones share. */
export async function createApart(server: BenchServer, count: number, fields?: object) {
  const [answers, firsts, bashes]: [number[], number[], number[]] = [[], [], []]
  const made: SandboxIds[] = []
  await createAndExec(server, made, fields)
  await times(BASHES, runBash)
  for (let index = 0; index < count; index++) {
    await Bun.sleep(APART_MS)
    bashes.push(await time(runBash))
    const startedAt = performance.now()
    const sandbox = await server.create(fields)
    answers.push(performance.now() - startedAt)
    await server.exec(sandbox)
    firsts.push(performance.now() - startedAt)
    made.push(sandbox)
  }
  await deleteAll(server, made)
  return { answers, firsts, bashes }
}

async function createAndExec(server: BenchServer, made: SandboxIds[], fields?: object): Promise<void> {
  const sandbox = await server.create(fields)
  made.push(sandbox)
  await server.exec(sandbox)
}

export const deleteAll = (server: BenchServer, made: readonly SandboxIds[]): Promise<unknown> =>
  Promise.all(made.map(sandbox => server.delete(sandbox)))

async function measureDelete({ sizes, record, signal }: Round, server: BenchServer): Promise<void> {
  const [answers, deaths]: [number[], number[]] = [[], []]
  for (let index = 0; index < sizes.deletes; index++) {
    const sandbox = await server.create()
    const sleeper = await startSleeper(server, sandbox)
    // The work that a create leaves for later must not count for the delete.
    await Bun.sleep(APART_MS)
    const startedAt = performance.now()
    await server.delete(sandbox)
    answers.push(performance.now() - startedAt)
    await sleeper.ended(signal)
    deaths.push(performance.now() - startedAt)
  }
  record('delete', answers)
  record('delete-dead', deaths)
}
