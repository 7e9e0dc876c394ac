/** Runs what is given to it, at most so many at once; the others wait, and start in order. */
export type Limit = <T>(work: () => T | Promise<T>) => Promise<T>

export function createLimit(most: number): Limit {
  const waiting: (() => void)[] = []
  let running = 0
  return async work => {
    if (running < most) running++
    else await new Promise<void>(resolve => waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = waiting.shift()
      if (next) next()
      else running--
    }
  }
}
