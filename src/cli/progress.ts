import { printable } from './printable.ts'

/** Shows long work on stderr: one changing line in a terminal, and occasional lines in a log. */
export interface Progress {
  /** Names the work that begins now. */
  say(what: string): void
  /** Adds a detail of the current work, such as a line of a backend's log. Does nothing between works. */
  note(more: string): void
  /** Counts bytes as they pass. */
  count(bytes: ReadableStream<Uint8Array>): ReadableStream<Uint8Array>
  /** Clears the line before something else is printed. */
  end(): void
}

/** Shorter work is not shown. */
const FIRST_AFTER_MS = 400
const DRAW_EVERY_MS = 200
const LOG_EVERY_MS = 10_000

/** With `isQuiet` it shows nothing. */
export function createProgress({ isQuiet = false } = {}): Progress {
  const { stderr } = process
  const isTerminal = stderr.isTTY === true
  let what: string | undefined
  let more = ''
  let bytes = 0
  let begun = 0
  let isDrawn = false
  let timer: NodeJS.Timeout | undefined

  const describe = () => {
    const size = bytes > 0 ? `, ${(bytes / 1_000_000).toFixed(1)} MB` : ''
    return printable(`${what}${more && `: ${more}`}${size}, ${Math.round((Date.now() - begun) / 1000)} s`).replaceAll(
      '\n',
      ' ',
    )
  }
  const tell = () => {
    if (!isTerminal) return void stderr.write(`threadbox: ${describe()}\n`)
    if (Date.now() - begun < FIRST_AFTER_MS && !isDrawn) return
    isDrawn = true
    stderr.write(`\r\x1b[2K${describe().slice(0, (stderr.columns || 80) - 1)}`)
  }
  const clear = () => {
    if (isDrawn) stderr.write('\r\x1b[2K')
    isDrawn = false
  }
  return {
    say(words) {
      if (isQuiet) return
      ;[what, more, bytes, begun] = [words, '', 0, Date.now()]
      timer ??= setInterval(tell, isTerminal ? DRAW_EVERY_MS : LOG_EVERY_MS)
      timer.unref()
    },
    note(words) {
      more = words
    },
    count: source =>
      source.pipeThrough(
        new TransformStream<Uint8Array, Uint8Array>({
          transform(piece, passed) {
            bytes += piece.byteLength
            passed.enqueue(piece)
          },
        }),
      ),
    end() {
      clearInterval(timer)
      timer = undefined
      clear()
    },
  }
}
