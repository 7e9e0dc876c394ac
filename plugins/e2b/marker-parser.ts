/** Separates our scripts' reports about a command from the command's output. */
export interface MarkerParser {
  /** Takes a chunk of output. Gives the command's output before the first report, that report, and the unparsed rest. */
  take(chunk: Buffer): { before: Buffer; report?: string; after: Buffer }
  /** At the end of the output: the bytes that could have begun a report. */
  rest(): Buffer
}

const MAX_REPORT_BYTES = 64

export function createMarkerParser(mark: number): MarkerParser {
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
      if (to < 0 && bytes.byteLength - from <= MAX_REPORT_BYTES) {
        held = bytes.subarray(at)
        return { before: bytes.subarray(0, at), after: nothing }
      }
      if (to < 0 || to - from > MAX_REPORT_BYTES) return { before: bytes, after: nothing }
      return {
        before: bytes.subarray(0, at),
        report: bytes.toString('latin1', from, to),
        after: bytes.subarray(to + 1),
      }
    },
    rest() {
      const bytes = held
      held = nothing
      return bytes
    },
  }
}

/** How many of the last bytes may begin a report. */
function openingAtEnd(bytes: Buffer, opening: Buffer): number {
  for (let length = Math.min(opening.byteLength - 1, bytes.byteLength); length > 0; length--) {
    if (bytes.subarray(bytes.byteLength - length).equals(opening.subarray(0, length))) return length
  }
  return 0
}
