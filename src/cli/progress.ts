import { printable } from './printable.ts'

/** Shows on stderr what takes long: one line that changes in a terminal, and in a log a line now and then. */
export interface Progress {
  /** What is being done from now on. */
  say(what: string): void
  /** More of what is being done, such as a line of a backend's log. Nothing while nothing is. */
  note(more: string): void
  /** Counts bytes as they pass. */
  count(bytes: ReadableStream<Uint8Array>): ReadableStream<Uint8Array>
  /** Clears the line: something else is about to be printed. */
  end(): void
}

/** What is over sooner is not worth a line. */
const FIRST_AFTER_MS = 400
const DRAW_EVERY_MS = 200
const LOG_EVERY_MS = 10_000

/** `isQuiet`: shows nothing. */
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
