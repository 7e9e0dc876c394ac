import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { ApiError, messageOf } from '../../../errors.ts'
import { movingBody } from '../../../read/bytes.ts'
import { createForm } from '../../upload.ts'

/** How many files one form may have. */
const MAX_FILES = 10_000
/** Form fields that are not files are not read beyond this. */
const MAX_FIELD_BYTES = 1024

/**
 * Passes each file of a multipart form, with the name that the form gives it, to `keep`, one after the other and at its pace.
 * Throws invalid_request for a body that is not such a form, and what `keep` throws.
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
    // The stream reports an error only as an event, which a reader that has not begun would miss.
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

/** Makes a stream that is read at its reader's pace. */
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
