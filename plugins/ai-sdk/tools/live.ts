const EVERY_MS = 250
const MAX_PIECE_CHARS = 4000
/** A client that needs all of an output has it in the result. */
const MAX_TOTAL_CHARS = 64_000

/** Shows a command's output while it runs: a piece four times a second, up to a total. */
export interface Live {
  add(text: string): void
  stop(): void
}

export function createLive(show: (text: string) => void): Live {
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
      // The first piece at once: a short command shows it is alive.
      if (timer === undefined) flush()
    },
    stop() {
      clearTimeout(timer)
      timer = undefined
      pending = ''
    },
  }
}
