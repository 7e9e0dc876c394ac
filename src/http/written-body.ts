import { type BodySink, bodyStream } from './body-stream.ts'
import { type Flow, watchStalls } from './flow.ts'

/** Writes an answer's body at its reader's pace. */
export interface BodyWriter {
  /** Aborts when the reader has gone. */
  readonly signal: AbortSignal
  /** False while the connection is full. */
  readonly hasRoom: boolean
  /** Resolves when there is room for a piece, or when the reader has gone. */
  room(): Promise<void>
  /**
   * Sends a piece whether there is room or not; its memory may be used again at once. When the reader has gone, nothing is sent.
   */
  write(piece: Uint8Array): void
}

/**
 * Makes a body that `write` begins to write at once, and that ends when `write` ends. It is a direct stream: no piece waits in a
 * queue.
 */
export function writtenBody(flow: Flow, write: (to: BodyWriter) => Promise<void>): ReadableStream<Uint8Array> {
  const stalls = watchStalls(flow)
  const gone = new AbortController()
  const opened = Promise.withResolvers<void>()
  const over = Promise.withResolvers<void>()
  let sink: BodySink | undefined
  /** Set while the connection has no room for more. */
  let full: Promise<unknown> | undefined
  let bytesBefore: number | undefined
  let isOver = false

  function stop(): void {
    if (isOver) return
    isOver = true
    stalls.end()
    flow.onEnd()
    opened.resolve()
  }

  function end(): void {
    stop()
    over.resolve()
  }

  function leave(): void {
    if (isOver) return
    end()
    gone.abort(new Error('the client went away'))
  }

  const writer: BodyWriter = {
    signal: gone.signal,
    get hasRoom() {
      return sink !== undefined && full === undefined
    },
    async room() {
      if (bytesBefore !== undefined) await flow.turn(bytesBefore)
      await opened.promise
      while (full && !isOver) await full
    },
    write(piece) {
      if (isOver || !sink) return
      bytesBefore = piece.byteLength
      const written = sink.write(piece)
      if (typeof written === 'number') return
      stalls.given()
      const taken = () => {
        stalls.taken()
        full = undefined
      }
      full = Promise.race([written, over.promise]).then(taken, leave)
    },
  }

  flow.signal.addEventListener('abort', leave, { once: true })
  if (flow.signal.aborted) leave()
  write(writer).then(end, error => {
    stop()
    // Breaks the connection, but not in the turn in which the answer begins, because Bun would print the error.
    setImmediate(over.reject, error)
  })
  return bodyStream(flow, {
    pull(controller) {
      sink = controller
      opened.resolve()
      return over.promise
    },
    cancel: leave,
  })
}
