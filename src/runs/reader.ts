import type { Chunk } from '../stream/chunk.ts'
import type { Feed } from '../stream/feed.ts'
import { DONE, HEARTBEAT, OPEN } from '../stream/frame.ts'
import type { ChunkSource } from './log.ts'
import type { Silences } from './silences.ts'

/** The stream for a reader that has more of a run than is stored. Its error is not part of the run, so it has no id. */
export function refuseReader(): Feed {
  const error: Chunk = {
    type: 'error',
    errorText:
      'This stream cannot go on after its Last-Event-ID: that part of the reply is not stored. Read it from its start.',
  }
  const pieces = [OPEN, Buffer.from(`data: ${JSON.stringify(error)}\n\n`), DONE]
  return {
    take: () => pieces.shift(),
    get isOver() {
      return pieces.length === 0
    },
    wait: () => {},
    leave: () => {},
  }
}

/**
 * A stream of server-sent events: the chunks after the chunk `after` (0: all), then new ones as they come, then the end.
 * `preface`: bytes that come before all of it. It is a cursor, and holds no chunk. Leaving it does not cancel the run.
 */
export function readRun(source: ChunkSource, after: number, silences: Silences, preface?: Uint8Array): Feed {
  const detach = source.attach()
  const opening = preface ? [OPEN, preface] : [OPEN]
  let position = after
  let isOver = false
  let hasLeft = false
  let isSilent = false
  let waiting: (() => void) | undefined

  function wake(): void {
    const woken = waiting
    waiting = undefined
    woken?.()
  }

  const silence = silences.watch(() => {
    // A consumer that does not wait either has no room for more, or is given something now.
    if (!waiting) return
    isSilent = true
    wake()
  })

  function leave(): void {
    if (hasLeft) return
    hasLeft = true
    detach()
    source.forget(wake)
    silence.end()
  }

  /** Returns the next chunks; undefined when there are none now. */
  function nextPage(): Uint8Array | undefined {
    for (;;) {
      const page = source.read(position)
      if (!page) return undefined
      position = page.last
      // A page may have no chunk for the reader's profile.
      if (page.bytes.length > 0) return page.bytes
    }
  }

  function end(): Uint8Array {
    isOver = true
    leave()
    return DONE
  }

  return {
    take() {
      if (isOver) return undefined
      const bytes =
        opening.shift() ?? nextPage() ?? (source.ended ? end() : undefined) ?? (isSilent ? HEARTBEAT : undefined)
      isSilent = false
      if (bytes) silence.break()
      return bytes
    },
    get isOver() {
      return isOver
    },
    wait(woken) {
      waiting = woken
      source.wait(wake)
    },
    leave,
  }
}
