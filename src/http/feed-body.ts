import type { Feed } from '../stream/feed.ts'
import { type BodySink, bodyStream } from './body-stream.ts'
import { type Flow, watchStalls } from './flow.ts'

/**
 * A body that passes a feed on at its reader's pace. A direct stream writes to the connection itself: with a thousand
 * readers of one run, the promises that another stream makes of each piece would cost as much as sending it.
 */
export function feedBody(feed: Feed, flow: Flow): ReadableStream<Uint8Array> {
  const stalls = watchStalls(flow)
  const over = Promise.withResolvers<void>()
  let isOver = false

  function stop(): void {
    if (isOver) return
    isOver = true
    stalls.end()
    feed.leave()
    flow.onEnd()
  }

  function end(): void {
    stop()
    over.resolve()
  }

  /** Passes on what is there. */
  async function pass(sink: BodySink): Promise<void> {
    try {
      let bytesBefore: number | undefined
      for (let piece = feed.take(); piece && !isOver; piece = feed.take()) {
        if (bytesBefore !== undefined) await flow.turn(bytesBefore)
        bytesBefore = piece.byteLength
        const written = sink.write(piece)
        if (typeof written === 'number') continue
        // The connection has no room for more.
        stalls.given()
        await written
        stalls.taken()
      }
      if (isOver) return
      if (feed.isOver) end()
      else feed.wait(() => void pass(sink))
    } catch (error) {
      stop()
      // Breaks the connection, but not in the turn in which the answer begins, because Bun would print the error.
      setImmediate(over.reject, error)
    }
  }

  flow.signal.addEventListener('abort', end, { once: true })
  return bodyStream(flow, {
    pull(sink) {
      void pass(sink)
      return over.promise
    },
    cancel: end,
  })
}
