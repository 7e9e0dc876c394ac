import type { Header } from '../../http1/head.ts'
import { formsOf } from './forms.ts'

/** Removes secrets from an answer. The replacements have the same length, so that lengths in the answer stay right. */
export interface Scrubber {
  header([name, value]: Header): Header
  text(value: string): string
  /**
   * Scrubs a body that comes in pieces, also where a secret is split between two. A partial body (a range) may begin or end
   * within a secret: those parts are removed too, except for up to three bytes of an end.
   */
  stream(isPart?: boolean): ScrubbedStream
}

export interface ScrubbedStream {
  /** Takes bytes and returns those that can be passed on now, including bytes held back before. */
  push(bytes: Buffer): Buffer
  /** Returns the bytes that are still held back. */
  end(): Buffer
}

/** Shorter secrets, such as an empty one, would be found in every answer. */
const MIN_BYTES = 4
const MASK = '*'.charCodeAt(0)

export function createScrubber(values: readonly string[]): Scrubber {
  const needles = [...new Set(values.flatMap(formsOf))]
    .filter(form => form.length >= MIN_BYTES)
    .sort((one, other) => other.length - one.length)
    .map(form => Buffer.from(form, 'latin1'))
  const longest = needles[0]?.byteLength ?? 0

  /** Returns a copy without the secrets, even overlapping ones, and where the last one that begins before `from` ends. */
  const mask = (bytes: Buffer, from: number): { clean: Buffer; end: number } => {
    const clean = Buffer.from(bytes)
    let last = 0
    for (const needle of needles) {
      for (let at = bytes.indexOf(needle); at >= 0; at = bytes.indexOf(needle, at + 1)) {
        const end = at + needle.byteLength
        clean.fill(MASK, at, end)
        if (at < from) last = Math.max(last, end)
      }
    }
    return { clean, end: last }
  }
  const text = (value: string) =>
    needles.length === 0 ? value : mask(Buffer.from(value, 'latin1'), 0).clean.toString('latin1')

  return {
    text,
    header: ([name, value]) => [name, text(value)],
    stream(isPart = false) {
      /** Bytes that may be the beginning of a secret, unchanged; the first of them may also be the end of another. */
      let held: Buffer = Buffer.alloc(0)
      let ending = 0
      let isBegun = !isPart
      return {
        push(bytes) {
          if (needles.length === 0) return bytes
          const all = held.byteLength > 0 ? Buffer.concat([held, bytes]) : bytes
          if (!isBegun) {
            // Whether the body begins within a secret can be decided only with this many bytes.
            if (all.byteLength < longest) {
              held = Buffer.from(all)
              return Buffer.alloc(0)
            }
            isBegun = true
            ending = Math.max(...needles.map(needle => endAtBeginning(all, needle)))
          }
          const from = Math.max(0, all.byteLength - longest + 1)
          const kept = Math.min(...needles.map(needle => beginningAtEnd(all, from, needle)))
          const { clean, end } = mask(all, kept)
          clean.fill(MASK, 0, ending)
          ending = Math.max(0, Math.max(end, ending) - kept)
          // A copy, because otherwise the whole piece would stay in memory.
          held = Buffer.from(all.subarray(kept))
          return clean.subarray(0, kept)
        },
        end() {
          const { clean } = mask(held, 0)
          if (isPart && !isBegun) ending = Math.max(0, ...needles.map(needle => endAtBeginning(held, needle)))
          clean.fill(MASK, 0, ending)
          if (isPart) {
            if (needles.some(needle => needle.includes(held))) clean.fill(MASK)
            const begins = Math.min(held.byteLength, ...needles.map(needle => beginningAtEnd(held, 0, needle)))
            if (held.byteLength - begins >= MIN_BYTES) clean.fill(MASK, begins)
          }
          held = Buffer.alloc(0)
          return clean
        },
      }
    },
  }
}

/** How many of the first bytes are the end of a needle that began before them. */
function endAtBeginning(bytes: Buffer, needle: Buffer): number {
  const first = bytes.subarray(0, MIN_BYTES)
  if (first.byteLength < MIN_BYTES) return 0
  for (let at = needle.indexOf(first, 1); at >= 0; at = needle.indexOf(first, at + 1)) {
    const length = needle.byteLength - at
    if (length <= bytes.byteLength && bytes.compare(needle, at, needle.byteLength, 0, length) === 0) return length
  }
  return 0
}

/** Where the first occurrence of the needle's beginning that reaches the end starts; the end when there is none. */
function beginningAtEnd(bytes: Buffer, from: number, needle: Buffer): number {
  const end = bytes.byteLength
  const first = Math.max(from, end - needle.byteLength + 1)
  for (let at = bytes.indexOf(needle[0] ?? 0, first); at >= 0; at = bytes.indexOf(needle[0] ?? 0, at + 1)) {
    if (bytes.compare(needle, 0, end - at, at, end) === 0) return at
  }
  return end
}
