export interface OutflowOptions {
  /** Waited for between two pieces. */
  turn(): Promise<void>
  /** The reader has taken nothing for so long. */
  onStalled(): void
  stalledMs: number
  /** Called once: at the end, when it breaks, or when the reader has gone. */
  onEnd(): void
}

/** A body at its reader's pace that gives way to all else between its pieces. */
export function outflow(
  body: ReadableStream<Uint8Array>,
  { turn, onStalled, stalledMs, onEnd }: OutflowOptions,
): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  let isFirst = true
  let isTaken = true
  let isSeen = false
  let isOver = false
  // Looked at twice: what was given just now had no time to be taken.
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
