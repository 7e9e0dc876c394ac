/** Lets those who carry bytes give way to all else. */
export interface Turns {
  /** Resolves in a turn of the event loop of its own, when those of other keys that wait have had theirs. */
  next(key: string): Promise<void>
}

/** A turn costs two microseconds: between any two pieces the event loop looks for new requests. */
export function createTurns(): Turns {
  const waiting = new Map<string, (() => void)[]>()
  let isDue = false

  /** The keys go round: who has many streams does not keep others waiting. */
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
