/** Measures how long work takes, in ms. */
export async function time(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now()
  await work()
  return performance.now() - startedAt
}

/** Measures how long each of `count` runs takes, one after the other. */
export async function times(count: number, work: (index: number) => Promise<unknown>): Promise<number[]> {
  const samples: number[] = []
  for (let index = 0; index < count; index++) samples.push(await time(() => work(index)))
  return samples
}

/** Runs the baseline: one fork and exec of `bash -c true`. */
export const runBash = (): Promise<number> =>
  Bun.spawn(['bash', '-c', 'true'], { stdio: ['ignore', 'ignore', 'ignore'] }).exited

/** Turns are short, so that other work on the machine affects both kinds alike. */
const TURN = 10

/** Times two kinds of work in turns. */
export async function alternate(
  count: number,
  one: () => Promise<unknown>,
  other: () => Promise<unknown>,
): Promise<[number[], number[]]> {
  const [ones, others]: [number[], number[]] = [[], []]
  for (let done = 0; done < count; done += TURN) {
    const turn = Math.min(TURN, count - done)
    ones.push(...(await times(turn, one)))
    others.push(...(await times(turn, other)))
  }
  return [ones, others]
}

/** Measures how many runs a second are possible with this many at once. */
export async function rate(count: number, atOnce: number, work: () => Promise<unknown>): Promise<number> {
  let begun = 0
  const next = async () => {
    while (begun < count) {
      begun += 1
      await work()
    }
  }
  const took = await time(() => Promise.all(Array.from({ length: atOnce }, next)))
  return (count / took) * 1000
}

export const MIB = 1024 * 1024

/** Computes MiB a second. */
export const speed = (bytes: number, tookMs: number): number => bytes / MIB / (tookMs / 1000)
