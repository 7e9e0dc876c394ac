export interface OutflowOptions {
  /** Awaited between two pieces. */
  turn(): Promise<void>
  /** Called when the reader has taken nothing for `stalledMs`, or up to twice as long. */
  onStalled(): void
  stalledMs: number
  /** Called once: when the body ends or fails, or when the reader has gone. */
  onEnd(): void
}

/** Passes a body on at its reader's pace. Between two pieces other work has its turn. */
export function outflow(
  body: ReadableStream<Uint8Array>,
  { turn, onStalled, stalledMs, onEnd }: OutflowOptions,
): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  let isFirst = true
  let isTaken = true
  let isSeen = false
  let isOver = false
  // A piece must be there at two checks: one that came just before the first had no time to be taken.
  const timer = setInterval(() => {
    if (!isTaken && isSeen) onStalled()
    isSeen = !isTaken
  }, stalledMs)
  const end = () => {
    if (isOver) return
    isOver = true
    clearInterval(timer)
    onEnd()
  }
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        isTaken = true
        isSeen = false
        try {
          if (!isFirst) await turn()
          isFirst = false
          const { value, done } = await reader.read()
          if (isOver) return
          isTaken = false
          if (!done) return controller.enqueue(value)
          end()
          controller.close()
        } catch (error) {
          end()
          throw error
        }
      },
      async cancel(reason) {
        end()
        await reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}
