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
  // Leaving the loop cancels the stream.
  for await (const chunk of stream ?? []) {
    byteLength += chunk.byteLength
    if (byteLength > maxBytes) return undefined
    take(chunk.byteLength)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
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
  { stillMs, take }: BodyOptions = {},
): Promise<Buffer | undefined> {
  const isTooLong = Number(request.headers.get('content-length') ?? 0) > maxBytes
  return isTooLong ? undefined : await readBytes(movingBody(request, stillMs), maxBytes, take)
}

const STILL_MS = 30_000

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
