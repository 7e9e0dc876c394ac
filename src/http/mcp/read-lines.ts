import { ApiError } from '../../errors.ts'

export interface LineRange {
  /** The number of the first line to read, counted from 1. */
  line: number
  lines: number
  /** How many characters all lines together may have. */
  characters: number
}

/** How much of a file is read that has few line breaks, or none. */
const MAX_BYTES = 256 * 1024 * 1024

/**
 * Reads lines of a text as it comes, and stops after them. `nextLine` says where more follows. Of a line that exceeds the whole
 * room only the beginning is returned. Throws invalid_request for bytes that are not text.
 */
export async function readLines(
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  { line, lines, characters }: LineRange,
): Promise<{ content: string; nextLine: number | undefined }> {
  const decoder = new TextDecoder()
  const last = line + lines
  let at = 1
  let bytesRead = 0
  let content = ''
  for await (const bytes of body) {
    bytesRead += bytes.byteLength
    if (bytes.includes(0)) throw new ApiError('invalid_request', 'This is no text file. Use exec to look at it.')
    if (bytesRead > MAX_BYTES)
      throw new ApiError('payload_too_large', 'These lines are too far in. Use exec to cut them out.')
    const text = decoder.decode(bytes, { stream: true })
    let from = 0
    while (from < text.length) {
      if (at >= last) return { content: content.toWellFormed(), nextLine: at }
      const end = text.indexOf('\n', from)
      const next = end < 0 ? text.length : end + 1
      if (at >= line) content += text.slice(from, next)
      from = next
      if (end >= 0) at++
      if (content.length > characters) return cut(content, line, characters)
    }
  }
  return { content: content.toWellFormed(), nextLine: undefined }
}

function cut(content: string, line: number, characters: number): { content: string; nextLine: number } {
  const kept = content.slice(0, characters)
  const end = kept.lastIndexOf('\n')
  // Even the first line is too long, and its rest is left out.
  const whole = end < 0 ? kept : kept.slice(0, end + 1)
  return { content: whole.toWellFormed(), nextLine: line + Math.max(1, whole.split('\n').length - 1) }
}
