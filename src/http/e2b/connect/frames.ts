import { gunzipSync } from 'node:zlib'
import { readEach } from '../../../read/bytes.ts'
import { codeOf } from '../../../read/error-code.ts'
import { type JsonObject, objectOf, parseJson } from '../../../read/json.ts'
import { ConnectError } from './error.ts'

/** A frame begins with a byte of flags and a big-endian length. */
const HEAD_BYTES = 5
const COMPRESSED = 1
const END_OF_STREAM = 2

/** The longest message that is read, before and after decompression. */
export const MAX_MESSAGE_BYTES = 4 * 1024 * 1024

const encoder = new TextEncoder()

/** Makes the frame of a message. */
export const frameOf = (message: object): Uint8Array => enclose(0, encoder.encode(JSON.stringify(message)))

/** Makes the last frame of a stream, which has the error when there was one. */
export const endFrameOf = (error?: ConnectError): Uint8Array =>
  enclose(END_OF_STREAM, encoder.encode(JSON.stringify(error ? { error } : {})))

function enclose(flags: number, payload: Uint8Array): Uint8Array {
  const frame = Buffer.allocUnsafe(HEAD_BYTES + payload.byteLength)
  frame[0] = flags
  frame.writeUInt32BE(payload.byteLength, 1)
  frame.set(payload, HEAD_BYTES)
  return frame
}

/**
 * Passes each message of a request's stream to `take`, one after the other and at its pace. Keeps no more than one frame in
 * memory. Throws a ConnectError for a frame that is too long, that is compressed in another way than `encoding` says, or that is
 * not a JSON object.
 */
export async function readFrames(
  body: ReadableStream<Uint8Array>,
  encoding: Encoding,
  take: (message: JsonObject) => unknown,
): Promise<void> {
  let chunks: Uint8Array[] = []
  let held = 0
  let wanted = HEAD_BYTES
  let isOver = false
  await readEach(body, async chunk => {
    chunks.push(chunk)
    held += chunk.byteLength
    if (held < wanted) return
    let bytes = Buffer.concat(chunks)
    for (wanted = frameLength(bytes); bytes.byteLength >= wanted; wanted = frameLength(bytes)) {
      const flags = bytes[0] ?? 0
      isOver = (flags & END_OF_STREAM) !== 0
      if (isOver) return false
      await take(messageOf(flags, bytes.subarray(HEAD_BYTES, wanted), encoding))
      bytes = bytes.subarray(wanted)
    }
    chunks = [bytes]
    held = bytes.byteLength
  })
  if (!isOver && held > 0) throw cutOff()
}

/** Reads the messages of a stream that has come completely; there are two at most. Throws as `readFrames` does. */
export function messagesIn(bytes: Buffer, encoding: Encoding): JsonObject[] {
  const found: JsonObject[] = []
  for (let at = 0; at < bytes.byteLength && found.length < 2; ) {
    const rest = bytes.subarray(at)
    const length = frameLength(rest)
    if (rest.byteLength < length) throw cutOff()
    const flags = rest[0] ?? 0
    if ((flags & END_OF_STREAM) !== 0) break
    found.push(messageOf(flags, rest.subarray(HEAD_BYTES, length), encoding))
    at += length
  }
  return found
}

const cutOff = () => new ConnectError('invalid_argument', 'The stream ends within a message.')

function frameLength(bytes: Buffer): number {
  if (bytes.byteLength < HEAD_BYTES) return HEAD_BYTES
  const flags = bytes[0] ?? 0
  if ((flags & ~(COMPRESSED | END_OF_STREAM)) !== 0)
    throw new ConnectError('invalid_argument', 'Unknown flags of a frame.')
  const length = bytes.readUInt32BE(1)
  if (length > MAX_MESSAGE_BYTES) throw tooLong()
  return HEAD_BYTES + length
}

const tooLong = () => new ConnectError('resource_exhausted', `A message has more than ${MAX_MESSAGE_BYTES} bytes.`)

function messageOf(flags: number, payload: Buffer, encoding: Encoding): JsonObject {
  if ((flags & COMPRESSED) === 0) return parseMessage(payload)
  if (encoding === 'identity')
    throw new ConnectError('internal', 'A compressed frame in a stream that names no compression.')
  return parseMessage(decompress(payload))
}

/** Parses a message. Throws for anything but a JSON object of a bounded depth. */
export function parseMessage(payload: Buffer): JsonObject {
  const message = objectOf(parseJson(payload.toString('utf8')))
  if (!message) throw new ConnectError('invalid_argument', 'The message is not a JSON object.')
  return message
}

/** How messages are compressed. */
export type Encoding = 'identity' | 'gzip'

/** Throws unimplemented for an unknown compression. */
export function encodingOf(name: string | null): Encoding {
  if (name === null || name === '' || name === 'identity') return 'identity'
  if (name === 'gzip') return 'gzip'
  throw new ConnectError('unimplemented', 'Unknown compression: messages may be plain or compressed with gzip.')
}

/** Throws for bytes that are not gzip, or that decompress to more than a message may have. */
export function decompress(bytes: Uint8Array): Buffer {
  try {
    return gunzipSync(bytes, { maxOutputLength: MAX_MESSAGE_BYTES })
  } catch (error) {
    if (codeOf(error) === 'ERR_BUFFER_TOO_LARGE') throw tooLong()
    throw new ConnectError('invalid_argument', 'The message is not compressed with gzip.')
  }
}
