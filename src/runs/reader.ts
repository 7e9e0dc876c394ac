import type { Chunk } from '../stream/chunk.ts'
import { DONE, HEARTBEAT, OPEN } from '../stream/frame.ts'
import type { ChunkSource } from './log.ts'

/** The stream for a reader that has more of a run than is stored. Its error is not part of the run, so it has no id. */
export function refuseReader(): ReadableStream<Uint8Array> {
  const error: Chunk = {
    type: 'error',
    errorText:
      'This stream cannot go on after its Last-Event-ID: that part of the reply is not stored. Read it from its start.',
  }
  return new Blob([OPEN, `data: ${JSON.stringify(error)}\n\n`, DONE]).stream()
}

/**
 * A stream of server-sent events: the chunks after the chunk `after` (0: all), then new ones as they come, then the end.
 * `preface`: bytes that come before all of it. It buffers one page at most, and only when its consumer pulls. Cancelling it does not cancel the run.
 */
export function readRun(
  source: ChunkSource,
  after: number,
  heartbeatMs = 15_000,
  preface?: Uint8Array,
): ReadableStream<Uint8Array> {
  const detach = source.attach()
  let position = after
  let left = false
  let stopWaiting = () => {}

  function leave(): void {
    if (left) return
    left = true
    detach()
    stopWaiting()
  }

  /** Waits. True when there may be more; false after a silence, or when the reader has left. */
  const more = () =>
    new Promise<boolean>(resolve => {
      const done = (woken: boolean) => {
        clearTimeout(silence)
        forget()
        resolve(woken)
      }
      const silence = setTimeout(done, heartbeatMs, false)
      const forget = source.wait(() => done(true))
      stopWaiting = () => done(false)
    })

  /** The next bytes, or undefined at the end. */
  async function next(): Promise<Uint8Array | undefined> {
    for (;;) {
      const page = source.read(position)
      if (page) {
        position = page.last
        // A page may have nothing that the reader's profile has.
        if (page.bytes.length === 0) continue
        return page.bytes
      }
      if (source.ended) return undefined
      if (!(await more())) return HEARTBEAT
    }
  }

  return new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(OPEN)
      if (preface) controller.enqueue(preface)
    },
    async pull(controller) {
      try {
        const bytes = await next()
        if (left) return
        controller.enqueue(bytes ?? DONE)
        if (bytes) return
        leave()
        controller.close()
      } catch (error) {
        leave()
        throw error
      }
    },
    cancel: leave,
  })
}
