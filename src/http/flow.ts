/** How a long answer is passed on. */
export interface Flow {
  /** Aborts when the client has gone, as a stream that waits may not see, or its key, token or link has ended. */
  signal: AbortSignal
  /** Awaited between two pieces; undefined: at once. `bytes`: how many the piece before had. */
  turn(bytes: number): Promise<void> | undefined
  /** Called when the reader has taken nothing for `stalledMs`, or up to twice as long. */
  onStalled(): void
  stalledMs: number
  /** The reader is a part of this server, and no connection. */
  isInside?: boolean
  /** Called once: when the body ends or fails, or when the reader has gone. */
  onEnd(): void
}

/** Finds out that a reader takes nothing of what it is given. */
export interface Stalls {
  /** A piece is there for the reader to take. */
  given(): void
  taken(): void
  end(): void
}

export function watchStalls({ stalledMs, onStalled }: Pick<Flow, 'stalledMs' | 'onStalled'>): Stalls {
  let isTaken = true
  let isSeen = false
  // A piece must be there at two checks: one that came just before the first had no time to be taken.
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
