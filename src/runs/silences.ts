/** Tells streams that they have been silent, with one timer for all of them. */
export interface Silences {
  /** `onSilence` is called each time that the stream was silent for as long as it may be. It must not throw. */
  watch(onSilence: () => void): Silence
}

/** The silence of one stream. */
export interface Silence {
  /** Its reader has been given something. */
  break(): void
  end(): void
}

/** A silence is found out up to this part of it early, and never late. */
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
