/** Turns of the event loop for streams, so that they do not hold up other work. */
export interface Turns {
  /** Resolves in an own turn of the event loop, after the other keys that wait have had one. */
  next(key: string): Promise<void>
}

/** A turn costs two microseconds. Between two turns the event loop takes new requests. */
export function createTurns(): Turns {
  const waiting = new Map<string, (() => void)[]>()
  let isDue = false

  /** Keys take turns: one with many streams does not keep others waiting. */
  function go(): void {
    const [[key, queue] = ['', []]] = waiting
    waiting.delete(key)
    queue.shift()?.()
    if (queue.length > 0) waiting.set(key, queue)
    isDue = waiting.size > 0
    if (isDue) setImmediate(go)
  }

  return {
    next(key) {
      const { promise, resolve } = Promise.withResolvers<void>()
      const queue = waiting.get(key)
      if (queue) queue.push(resolve)
      else waiting.set(key, [resolve])
      if (!isDue) setImmediate(go)
      isDue = true
      return promise
    },
  }
}
