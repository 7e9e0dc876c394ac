/** One thing of a kind that takes a while to make, kept ready for the next who wants it. */
export interface Prepared<K, T> {
  /** The prepared thing when it is for such a key, else one made now. */
  take(key: K): Promise<T>
  /** Makes one ready in the background. A failure is met again, and told, by `take`. */
  prepare(key: K): void
  /** Drops what is ready; resolves when it is gone. */
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
