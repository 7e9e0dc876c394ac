/** Keeps one thing ready that takes a while to make. */
export interface Prepared<K, T> {
  /** Takes the prepared thing if it was made for an equal key, else makes one now. */
  take(key: K): Promise<T>
  /** Makes one in the background. Failures are dropped here; `take` retries and throws. */
  prepare(key: K): void
  /** Drops the prepared thing; resolves when it is gone. */
  close(): Promise<void>
}

export function createPrepared<K, T>(make: (key: K) => Promise<T>, drop: (thing: T) => Promise<void>): Prepared<K, T> {
  let ready: { key: K; thing: Promise<T | undefined> } | undefined
  let closed = false

  const discard = async () => {
    const old = ready
    ready = undefined
    const thing = await old?.thing
    if (thing !== undefined) await drop(thing)
  }

  return {
    async take(key) {
      if (!ready || !Bun.deepEquals(ready.key, key)) return make(key)
      const { thing } = ready
      ready = undefined
      return (await thing) ?? make(key)
    },
    prepare(key) {
      if (closed || (ready && Bun.deepEquals(ready.key, key))) return
      const thing = discard()
        .then(() => make(key))
        .catch(() => undefined)
      ready = { key, thing }
    },
    close() {
      closed = true
      return discard()
    },
  }
}
