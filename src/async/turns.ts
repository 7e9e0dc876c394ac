/** Hands out turns of the event loop to work that comes in many pieces, so that it does not hold up other work. */
export interface Turns {
  /**
   * Resolves when it is the turn of this work, after the other keys that wait have had one. `size` says how much of a turn the work
   * takes, at most 1. Undefined when the work is smaller than that and the current turn has room for it: it may be done at once.
   */
  next(key: string, size?: number): Promise<void> | undefined
}

interface Waiting {
  begin: () => void
  size: number
}

/** A turn costs two microseconds. Between two turns the event loop takes new requests. */
export function createTurns(): Turns {
  const queues = new Map<string, Waiting[]>()
  let room = 1
  let isDue = false
  let last = ''

  function use(key: string, size: number): void {
    last = key
    room -= size
    schedule()
  }

  function schedule(): void {
    if (!isDue) setImmediate(go)
    isDue = true
  }

  /** The key that has waited longest is first. The key of the last turn goes to the end, also when it was not in the queue then. */
  function nextKey(): string | undefined {
    const [key] = queues.keys()
    const queue = key === last && queues.size > 1 ? queues.get(key) : undefined
    if (key === undefined || !queue) return key
    queues.delete(key)
    queues.set(key, queue)
    return nextKey()
  }

  function go(): void {
    isDue = false
    room = 1
    for (let key = nextKey(); key !== undefined; key = nextKey()) {
      const queue = queues.get(key) ?? []
      const [first] = queue
      if (first && room < 1 && room < first.size) return
      queue.shift()
      queues.delete(key)
      if (queue.length > 0) queues.set(key, queue)
      use(key, first?.size ?? 0)
      first?.begin()
    }
  }

  return {
    next(key, size = 1) {
      if (queues.size === 0 && size < 1 && size <= room) {
        use(key, size)
        return undefined
      }
      const { promise, resolve } = Promise.withResolvers<void>()
      const queue = queues.get(key)
      if (queue) queue.push({ begin: resolve, size })
      else queues.set(key, [{ begin: resolve, size }])
      schedule()
      return promise
    },
  }
}
