/** How a long answer is passed on. */
export interface Flow {
  /** Aborts when the client has gone, which a waiting stream may not see itself, and when its key, token or link has ended. */
  signal: AbortSignal
  /** Awaited between two pieces; undefined when the next may be sent at once. `bytes` is the size of the last piece. */
  turn(bytes: number): Promise<void> | undefined
  /** Called when the reader has taken nothing for `stalledMs`, at the latest after twice that time. */
  onStalled(): void
  stalledMs: number
  /** Whether the reader is a part of this server, and not a connection. */
  isInside?: boolean
  /** Called once: when the body ends or fails, or when the reader has gone. */
  onEnd(): void
}

/** Finds out that a reader takes nothing of what it is given. */
export interface Stalls {
  /** Notes that a piece waits for the reader. */
  given(): void
  taken(): void
  end(): void
}

export function watchStalls({ stalledMs, onStalled }: Pick<Flow, 'stalledMs' | 'onStalled'>): Stalls {
  let isTaken = true
  let isSeen = false
  // A piece must be there at two checks, because one that came just before the first had no time to be taken.
  const timer = setInterval(() => {
    if (!isTaken && isSeen) onStalled()
    isSeen = !isTaken
  }, stalledMs)
  return {
    given() {
      isTaken = false
    },
    taken() {
      isTaken = true
      isSeen = false
    },
    end: () => clearInterval(timer),
  }
}
