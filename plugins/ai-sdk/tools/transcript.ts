import { MAX_OUTPUT_CHARS, missing } from './output.ts'

/** The beginning and the end of a command's output, in bounded memory. */
export interface Transcript {
  add(stream: 'stdout' | 'stderr', bytes: Uint8Array): string
  /** All of the output, or both ends with a note on the part between them. */
  text(): string
}

export function createTranscript(maxChars = MAX_OUTPUT_CHARS): Transcript {
  const half = Math.floor(maxChars / 2)
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() }
  let head = ''
  let tail = ''
  let left = 0
  return {
    add(stream, bytes) {
      const text = decoders[stream].decode(bytes, { stream: true })
      const room = half - head.length
      head += text.slice(0, room)
      tail += text.slice(room)
      // Not cut at each piece: a piece may be a single byte.
      if (tail.length > 2 * half + 65_536) cutTail()
      return text
    },
    text() {
      cutTail()
      return left > 0 ? `${head}${missing(left)}${tail}` : head + tail
    },
  }

  function cutTail(): void {
    const over = tail.length - half
    if (over <= 0) return
    tail = tail.slice(over)
    left += over
  }
}
