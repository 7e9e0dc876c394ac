import { beforeTimeout } from '../async/timeout.ts'
import { ApiError } from '../errors.ts'

/** All of a stream; undefined when that is more than `maxBytes`: then the stream is cancelled. */
export async function readBytes(
  stream: ReadableStream<Uint8Array> | null,
  maxBytes: number,
  take: (bytes: number) => void = () => {},
): Promise<Buffer | undefined> {
  const chunks: Uint8Array[] = []
  let byteLength = 0
  let isTooLong = false
  const keep = (chunk: Uint8Array) => {
    byteLength += chunk.byteLength
    isTooLong = byteLength > maxBytes
    if (isTooLong) return false
    take(chunk.byteLength)
    chunks.push(chunk)
    return true
  }
  if (stream) await readEach(stream, keep)
  return isTooLong ? undefined : Buffer.concat(chunks)
}

/**
 * Gives each piece of a stream to `take`, the next one once that is done. The stream is cancelled when `take` throws or gives
 * false. As `for await`, which takes more turns of the event loop.
 */
export async function readEach(
  stream: ReadableStream<Uint8Array>,
  take: (chunk: Uint8Array) => unknown,
): Promise<void> {
  const reader = stream.getReader()
  let isOver = false
  try {
    while (!isOver) {
      const { value, done } = await reader.read()
      isOver = done
      if (!done && (await take(value)) === false) return
    }
  } finally {
    if (!isOver) reader.cancel().catch(() => {})
  }
}

export interface BodyOptions {
  /** A body of which nothing comes for so long is given up. */
  stillMs?: number
  /** Sees each piece before it is kept, and may throw. */
  take?: (bytes: number) => void
}

/** Bytes in parts of at most so many, without a copy. */
export function* partsOf(bytes: Uint8Array, maxBytes: number): Generator<Uint8Array, void> {
  for (let at = 0; at < bytes.byteLength; at += maxBytes) yield bytes.subarray(at, at + maxBytes)
}

/**
 * Of a stream of server-sent events, for the parser that the AI SDK has: it looks to the end of what it is given from
 * each CR that it finds there.
 */
export const EVENT_BYTES = 16 * 1024

/** A request's whole body; undefined when it is, or says that it is, more than `maxBytes`. Throws as `movingBody` does. */
export async function readBody(
  request: Request,
  maxBytes: number,
  options: BodyOptions = {},
): Promise<Buffer | undefined> {
  const length = Number(request.headers.get('content-length') ?? Number.NaN)
  if (length > maxBytes) return undefined
  if (length <= SHORT_BYTES) return await readShort(request, length, options)
  return await readBytes(movingBody(request, options.stillMs), maxBytes, options.take)
}

const STILL_MS = 30_000

/** A body that declares at most this length is read in one piece, without a stream. */
const SHORT_BYTES = 16 * 1024

async function readShort(request: Request, length: number, { stillMs = STILL_MS, take }: BodyOptions): Promise<Buffer> {
  take?.(length)
  const bytes = await beforeTimeout(stillMs, request.bytes(), () => {
    throw new ApiError('request_timeout', still(stillMs))
  })
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** A request's body at its reader's pace. It breaks with request_timeout when nothing of it comes for so long. */
export function movingBody({ body }: Request, stillMs = STILL_MS): ReadableStream<Uint8Array> | null {
  const reader = body?.getReader()
  if (!reader) return null
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        // Others have their turn between two pieces.
        await new Promise<void>(resolve => setImmediate(resolve))
        try {
          const { value, done } = await beforeTimeout(stillMs, reader.read(), () => {
            throw new ApiError('request_timeout', still(stillMs))
          })
          if (done) controller.close()
          else controller.enqueue(value)
        } catch (error) {
          reader.cancel(error).catch(() => {})
          throw error
        }
      },
      cancel: reason => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
}

const still = (ms: number) => `body: nothing of it came for ${ms / 1000} seconds`
