/** Tells streams that they have been silent, with one timer for all of them. */
export interface Silences {
  /** Calls `onSilence` each time that the stream was silent for the whole interval. `onSilence` must not throw. */
  watch(onSilence: () => void): Silence
}

/** Watches the silence of one stream. */
export interface Silence {
  /** Call this when its reader was given something. */
  break(): void
  end(): void
}

/** A silence may be noticed early by this part of the interval, and is never noticed late. */
const PARTS = 15

export function createSilences(mostMs: number): Silences {
  const streams = new Set<{ heardAt: number; onSilence: () => void }>()
  let now = 0
  let timer: Timer | undefined

  function tick(): void {
    now += 1
    for (const stream of streams) {
      if (now - stream.heardAt < PARTS) continue
      stream.heardAt = now
      stream.onSilence()
    }
  }

  return {
    watch(onSilence) {
      const stream = { heardAt: now, onSilence }
      streams.add(stream)
      timer ??= setInterval(tick, mostMs / PARTS)
      return {
        break() {
          stream.heardAt = now
        },
        end() {
          streams.delete(stream)
          if (streams.size > 0) return
          clearInterval(timer)
          timer = undefined
        },
      }
    },
  }
}
