import { isUtf8 } from 'node:buffer'
import type { OutputStream } from '../plugin-api/index.ts'
import { escapedBytes, escapeInto } from '../stream/escape.ts'

/** A piece of output as UTF-8 that ends with a whole character. */
export interface OutputText {
  type: OutputStream
  /** The position of the first byte in the whole output. */
  offset: number
  text: Uint8Array
}

/** Cuts output between characters. */
export interface OutputTexts {
  /** Returns undefined while no character is complete. */
  add(type: OutputStream, offset: number, bytes: Uint8Array): OutputText | undefined
  /** The position from which a later reader gets the bytes that are still held back. */
  resumeAt(end: number): number
  /** Returns the bytes that are still held back, as text, once. */
  rest(): OutputText[]
}

/** Turns the bytes of each stream into text. An incomplete character is held back; bytes that are not UTF-8 are replaced. */
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
        // The few bytes are copied, so that the memory they came in can be freed.
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

/** How many bytes at the end belong to an incomplete UTF-8 character. */
function cutBytes(bytes: Uint8Array): number {
  for (let back = 1; back <= 3; back++) {
    const byte = bytes.at(-back)
    if (byte === undefined || byte < 0x80) return 0
    if (byte >= 0xc0) return back < (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) ? back : 0
  }
  return 0
}

/**
 * Returns a function that makes the frame of a text's event: `begin`, which ends within a JSON string, then the text, then the
 * end of the object. A frame is valid until the next one, which uses the same memory.
 */
export function createTextFrames(): (begin: string, text: Uint8Array) => Uint8Array {
  let frame = Buffer.alloc(0)
  return (begin, text) => {
    const needed = Buffer.byteLength(begin) + escapedBytes(text.byteLength) + END.byteLength
    // A large buffer costs little, because the kernel gives memory only for pages that are written.
    if (frame.byteLength < needed) frame = Buffer.allocUnsafeSlow(needed)
    const end = escapeInto(text, frame, frame.write(begin))
    frame.set(END, end)
    return frame.subarray(0, end + END.byteLength)
  }
}

const END = Buffer.from('"}\n\n')
