import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { ApiError, messageOf } from '../../../errors.ts'
import { movingBody } from '../../../read/bytes.ts'
import { createForm } from '../../upload.ts'

/** As many files as one form may have. */
const MAX_FILES = 10_000
/** Parts that are no files are not read. */
const MAX_FIELD_BYTES = 1024

/**
 * Gives each file of a multipart form to `keep`, with the name that it has there, one after the other and at its pace. Throws
 * invalid_request for what is no such form, and what `keep` throws.
 */
export async function readFiles(
  request: Request,
  keep: (name: string, body: ReadableStream<Uint8Array>) => Promise<void>,
): Promise<void> {
  const body = movingBody(request)
  if (!body) throw wrong('must be multipart/form-data')
  const form = await createForm({
    headers: { 'content-type': request.headers.get('content-type') ?? '' },
    limits: { fieldSize: MAX_FIELD_BYTES, parts: MAX_FILES, headerPairs: 20 },
    preservePath: true,
    isPartAFile: name => name === 'file',
  })
  const stop = new AbortController()
  const keeping: Promise<void>[] = []
  form.on('file', (_field, part, name) => {
    // Errors of the stream come as an event only, which a reader that has not begun would miss.
    part.on('error', error => part.destroy(error))
    stop.signal.addEventListener('abort', () => part.destroy(), { once: true })
    const kept = keep(name ?? '', streamOf(part)).catch(error => {
      stop.abort(error)
      part.resume()
    })
    keeping.push(kept)
  })
  form.on('partsLimit', () => stop.abort(wrong(`has more than ${MAX_FILES} files`)))
  try {
    await pipeline(Readable.fromWeb(body as never), form, { signal: AbortSignal.any([request.signal, stop.signal]) })
  } catch (error) {
    const reason = stop.signal.reason ?? (request.signal.aborted ? request.signal.reason : undefined)
    stop.abort(error)
    await Promise.all(keeping)
    throw reason ?? (error instanceof ApiError ? error : wrong(`not a multipart form: ${messageOf(error)}`))
  }
  await Promise.all(keeping)
  stop.signal.throwIfAborted()
}

const wrong = (what: string) => new ApiError('invalid_request', `body: ${what}`, { field: 'body' })

/** At its reader's pace. */
function streamOf(part: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  const iterator = part[Symbol.asyncIterator]()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const { value, done } = await iterator.next()
        if (done) controller.close()
        else controller.enqueue(value)
      },
      async cancel() {
        await iterator.return?.()
      },
    },
    { highWaterMark: 0 },
  )
}
