/** Takes what the scripts say about a command out of what the command says. */
export interface Cutter {
  /** What of this and of what was held is the command's, and what was said there, if anything. */
  take(chunk: Buffer): { before: Buffer; said?: string; after: Buffer }
  /** What is held when nothing more comes. */
  rest(): Buffer
}

const MAX_SAID_BYTES = 64

export function createCutter(mark: number): Cutter {
  const opening = Buffer.from(`\x01tb:${mark}:`)
  let held: Buffer = Buffer.alloc(0)
  const nothing = Buffer.alloc(0)

  return {
    take(chunk) {
      const bytes = held.byteLength > 0 ? Buffer.concat([held, chunk]) : chunk
      held = nothing
      const at = bytes.indexOf(opening)
      if (at < 0) {
        const sure = bytes.byteLength - openingAtEnd(bytes, opening)
        held = bytes.subarray(sure)
        return { before: bytes.subarray(0, sure), after: nothing }
      }
      const from = at + opening.byteLength
      const to = bytes.indexOf(2, from)
      if (to < 0 && bytes.byteLength - from <= MAX_SAID_BYTES) {
        held = bytes.subarray(at)
        return { before: bytes.subarray(0, at), after: nothing }
      }
      if (to < 0 || to - from > MAX_SAID_BYTES) return { before: bytes, after: nothing }
      return { before: bytes.subarray(0, at), said: bytes.toString('latin1', from, to), after: bytes.subarray(to + 1) }
    },
    rest() {
      const bytes = held
      held = nothing
      return bytes
    },
  }
}

/** How many of the last bytes may be the beginning of a mark. */
function openingAtEnd(bytes: Buffer, opening: Buffer): number {
  for (let length = Math.min(opening.byteLength - 1, bytes.byteLength); length > 0; length--) {
    if (bytes.subarray(bytes.byteLength - length).equals(opening.subarray(0, length))) return length
  }
  return 0
}
