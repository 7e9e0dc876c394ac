/** Passes values of several producers to one consumer, in order. It is unbounded: the producers limit what they push. */
export interface Queue<T> {
  push(value: T): void
  end(): void
  values(): AsyncGenerator<T, void>
}

export function createQueue<T>(): Queue<T> {
  let waiting: T[] = []
  let isEnded = false
  let wake = Promise.withResolvers<void>()
  return {
    push(value) {
      waiting.push(value)
      wake.resolve()
    },
    end() {
      isEnded = true
      wake.resolve()
    },
    async *values() {
      for (;;) {
        const values = waiting
        waiting = []
        yield* values
        if (waiting.length > 0) continue
        if (isEnded) return
        wake = Promise.withResolvers()
        await wake.promise
      }
    },
  }
}
