const EVERY_MS = 250
const MAX_PIECE_CHARS = 4000
/** The result has all of an output. */
const MAX_TOTAL_CHARS = 64_000

/** Shows a command's output while it runs: one piece every 250 ms, up to 64,000 characters in all. */
export interface OutputPreview {
  add(text: string): void
  stop(): void
}

export function createOutputPreview(show: (text: string) => void): OutputPreview {
  let pending = ''
  let shown = 0
  let timer: ReturnType<typeof setTimeout> | undefined

  function flush(): void {
    timer = undefined
    if (pending === '') return
    const skipped = pending.length - MAX_PIECE_CHARS
    const piece = skipped > 0 ? `… ${pending.slice(skipped)}` : pending
    pending = ''
    shown += piece.length
    show(piece)
    if (shown >= MAX_TOTAL_CHARS) show('\n… the rest is shown when the command has ended\n')
    timer = setTimeout(flush, EVERY_MS)
  }

  return {
    add(text) {
      if (shown >= MAX_TOTAL_CHARS) return
      pending = (pending + text).slice(-2 * MAX_PIECE_CHARS)
      // The first piece is shown at once, so that the user sees that the command runs.
      if (timer === undefined) flush()
    },
    stop() {
      clearTimeout(timer)
      timer = undefined
      pending = ''
    },
  }
}
