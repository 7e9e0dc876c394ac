/** At most so many calls at once; the others wait for their turn, in order. */
export function inTurns<Input, Output>(
  call: (input: Input) => Promise<Output>,
  limit: number,
): (input: Input) => Promise<Output> {
  const waiting: (() => void)[] = []
  let running = 0
  return async input => {
    if (running < limit) running++
    else await new Promise<void>(resolve => waiting.push(resolve))
    try {
      return await call(input)
    } finally {
      const next = waiting.shift()
      if (next) next()
      else running--
    }
  }
}
