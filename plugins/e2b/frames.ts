import { ApiError } from '../../src/errors.ts'
import { objectOf, parseJson } from '../../src/read/json.ts'

/** A flag byte, and a length in big-endian order. */
const HEAD_BYTES = 5
const END_OF_STREAM = 2
/** envd reads output in pieces of 32 kB. */
const MAX_FRAME_BYTES = 4 * 1024 * 1024

/** Encodes a message as the only frame of a request. */
export function requestFrame(message: object): Uint8Array<ArrayBuffer> {
  const json = Buffer.from(JSON.stringify(message))
  const frame = Buffer.alloc(HEAD_BYTES + json.byteLength)
  frame.writeUInt32BE(json.byteLength, 1)
  frame.set(json, HEAD_BYTES)
  return frame
}

/**
 * Reads the messages of a Connect RPC stream. Throws sandbox_unavailable when the stream breaks off or is malformed, and the
 * stream's own error when it ends with one.
 */
export async function* readFrames(body: ReadableStream<Uint8Array> | null): AsyncGenerator<unknown, void> {
  const chunks: Uint8Array[] = []
  let held = 0
  let wanted = HEAD_BYTES
  for await (const chunk of body ?? []) {
    chunks.push(chunk)
    held += chunk.byteLength
    if (held < wanted) continue
    let bytes = Buffer.concat(chunks)
    chunks.length = 0
    for (wanted = readLength(bytes); bytes.byteLength >= wanted; wanted = readLength(bytes)) {
      const message = parseJson(bytes.toString('utf8', HEAD_BYTES, wanted))
      if ((bytes[0] ?? 0) & END_OF_STREAM) return endStream(message)
      yield message
      bytes = bytes.subarray(wanted)
    }
    chunks.push(bytes)
    held = bytes.byteLength
  }
  throw new ApiError('sandbox_unavailable', 'The connection to the sandbox broke off.')
}

/** The length of the first frame with its head, in bytes. */
function readLength(bytes: Buffer): number {
  if (bytes.byteLength < HEAD_BYTES) return HEAD_BYTES
  const length = bytes.readUInt32BE(1)
  if (length > MAX_FRAME_BYTES)
    throw new ApiError('sandbox_unavailable', 'The sandbox sent a message that is too long.')
  return HEAD_BYTES + length
}

function endStream(message: unknown): void {
  const error = objectOf(objectOf(message)?.error)
  if (!error) return
  const text = typeof error.message === 'string' ? error.message.slice(0, 1000) : 'without a reason'
  throw new ApiError(error.code === 'invalid_argument' ? 'invalid_request' : 'sandbox_unavailable', text)
}
