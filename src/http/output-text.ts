import { isUtf8 } from 'node:buffer'
import type { OutputStream } from '../plugin-api/index.ts'
import { escapedBytes, escapeInto } from '../stream/escape.ts'

/** Output as UTF-8, in whole characters. */
export interface OutputText {
  type: OutputStream
  /** Of its first byte in the output. */
  offset: number
  text: Uint8Array
}

/** Cuts output between characters. */
export interface OutputTexts {
  /** Undefined while no character is whole. */
  add(type: OutputStream, offset: number, bytes: Uint8Array): OutputText | undefined
  /** The offset from which a later reader gets the bytes that are held back, too. */
  resumeAt(end: number): number
  /** The bytes that are still held back, as text. They are given once. */
  rest(): OutputText[]
}

/** Makes text of each stream's bytes. A character that has not come whole is held back; what is not UTF-8 is replaced. */
export function createTexts(): OutputTexts {
  const held: Partial<Record<OutputStream, { offset: number; bytes: Uint8Array }>> = {}
  return {
    add(type, at, added) {
      const before = held[type]
      const offset = before?.offset ?? at
      const all = before ? Buffer.concat([before.bytes, added]) : added
      const whole = all.byteLength - cutBytes(all)
      delete held[type]
      if (whole < all.byteLength) {
        // Few bytes: they are copied, and what they came with is let go.
        held[type] = { offset: at + added.byteLength - (all.byteLength - whole), bytes: all.slice(whole) }
      }
      return whole > 0 ? { type, offset, text: valid(all.subarray(0, whole)) } : undefined
    },
    resumeAt: end => Math.min(end, held.stdout?.offset ?? end, held.stderr?.offset ?? end),
    rest: () =>
      (['stdout', 'stderr'] as const).flatMap(type => {
        const { offset = 0, bytes } = held[type] ?? {}
        delete held[type]
        return bytes ? [{ type, offset, text: valid(bytes) }] : []
      }),
  }
}

const valid = (bytes: Uint8Array): Uint8Array => (isUtf8(bytes) ? bytes : Buffer.from(Buffer.from(bytes).toString()))

/** How many bytes at the end begin a UTF-8 character without its end. */
function cutBytes(bytes: Uint8Array): number {
  for (let back = 1; back <= 3; back++) {
    const byte = bytes.at(-back)
    if (byte === undefined || byte < 0x80) return 0
    if (byte >= 0xc0) return back < (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) ? back : 0
  }
  return 0
}

/**
 * Makes an event's frame of text: between `begin`, which ends within a JSON string, and the end of its object. A frame is good
 * until the next one is made in the same memory.
 */
export function createTextFrames(): (begin: string, text: Uint8Array) => Uint8Array {
  let frame = Buffer.alloc(0)
  return (begin, text) => {
    const needed = Buffer.byteLength(begin) + escapedBytes(text.byteLength) + END.byteLength
    // The kernel gives memory only for pages that are written to.
    if (frame.byteLength < needed) frame = Buffer.allocUnsafeSlow(needed)
    const end = escapeInto(text, frame, frame.write(begin))
    frame.set(END, end)
    return frame.subarray(0, end + END.byteLength)
  }
}

const END = Buffer.from('"}\n\n')
