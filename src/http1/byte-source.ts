import type { Readable, Writable } from 'node:stream'
import { HttpError } from './http-error.ts'

/** Reads a stream's bytes on demand. It reads ahead only what came in one piece with what was wanted. */
export interface ByteSource {
  /** The next bytes; undefined at the end. Throws when the stream broke. */
  read(): Promise<Buffer | undefined>
  /** Puts bytes back: the next read gives them again. */
  unread(bytes: Buffer): void
  /** Takes the bytes that were read ahead, while no read is under way. Later bytes stay in the stream. */
  takeAhead(): Buffer | undefined
  /** Resolves to whether the stream has ended, once the next bytes or the end come. A read may follow at once. */
  isEnded(): Promise<boolean>
  /**
   * Reads all bytes up to the mark, and the mark; undefined when the stream ends before its first byte. Throws an
   * HttpError when it ends later, or the mark does not come within `maxBytes`.
   */
  readThrough(mark: string, maxBytes: number): Promise<Buffer | undefined>
}

export function createByteSource(stream: Readable): ByteSource {
  // The usual iterator destroys a duplex when its reading side ends: nothing could be answered then.
  const iterator: AsyncIterator<Buffer> = stream.iterator({ destroyOnReturn: false })
  let held: Buffer | undefined
  let coming: Promise<IteratorResult<Buffer, unknown>> | undefined

  const read = async () => {
    if (held) {
      const bytes = held
      held = undefined
      return bytes
    }
    // Others have their turn, and bytes that come one by one gather meanwhile.
    await new Promise<void>(resolve => setImmediate(resolve))
    coming ??= iterator.next()
    const next = await coming
    coming = undefined
    return next.done ? undefined : next.value
  }
  const unread = (bytes: Buffer) => {
    if (bytes.byteLength > 0) held = held ? Buffer.concat([bytes, held]) : bytes
  }

  return {
    read,
    unread,
    takeAhead() {
      const waiting: unknown = stream.read()
      if (Buffer.isBuffer(waiting)) held = held ? Buffer.concat([held, waiting]) : waiting
      const bytes = held
      held = undefined
      return bytes
    },
    async isEnded() {
      if (held) return false
      coming ??= iterator.next()
      return Boolean((await coming).done)
    },
    async readThrough(mark, maxBytes) {
      let bytes: Buffer = Buffer.alloc(0)
      let room: Buffer = bytes
      for (;;) {
        const piece = await read()
        if (!piece && bytes.byteLength === 0) return undefined
        if (!piece) throw new HttpError(400, 'the request is cut short')
        const from = Math.max(0, bytes.byteLength - mark.length)
        const length = bytes.byteLength + piece.byteLength
        if (bytes.byteLength === 0) bytes = piece
        else {
          // Twice the room that is needed now: pieces may be single bytes, and each would copy all again.
          if (length > room.byteLength) {
            room = Buffer.allocUnsafe(2 * length)
            bytes.copy(room)
          }
          piece.copy(room, bytes.byteLength)
          bytes = room.subarray(0, length)
        }
        const start = bytes.indexOf(mark, from, 'latin1')
        const end = start + mark.length
        if (start < 0 ? bytes.byteLength >= maxBytes : end > maxBytes)
          throw new HttpError(431, `more than ${maxBytes} bytes`)
        if (start < 0) continue
        unread(bytes.subarray(end))
        return bytes.subarray(0, end)
      }
    },
  }
}

/** A peer that reads nothing for this long counts as gone. */
const STALLED_MS = 5 * 60_000

/** Writes, and resolves when the stream has room for more. Throws when the stream was destroyed. */
export async function write(sink: Writable, bytes: Uint8Array | string): Promise<void> {
  if (sink.destroyed) throw new Error('the peer is gone')
  if (sink.write(bytes)) return
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(() => sink.destroy(), STALLED_MS)
  sink.once('drain', resolve).once('close', resolve)
  await promise
  clearTimeout(timer)
  sink.off('drain', resolve).off('close', resolve)
}
