import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { BusboyConfig } from '@fastify/busboy'
import { bounds, excerpt } from '../bounds.ts'
import { ApiError, messageOf } from '../errors.ts'
import { movingBody } from '../read/bytes.ts'
import { takeMemory } from './body.ts'

/** The bytes of all parts that are not files: as many as a JSON body may have. */
const MAX_FIELD_BYTES = bounds.bodyBytes
const MAX_PARTS = 30

export interface UploadOptions<Kept> {
  /** Names of the parts that are files of any size. All other parts are text, even with a file name. */
  files: readonly string[]
  /** Reads a file as it comes. An error of it ends the upload. */
  keep(field: string, body: AsyncIterable<Uint8Array>): Promise<Kept>
}

export interface Upload<Kept> {
  fields: Map<string, string>
  files: Map<string, Kept>
}

/** Reads a multipart form without holding its files in memory. Throws invalid_request, and what `keep` throws. */
export async function readUpload<Kept extends Disposable>(
  request: Request,
  { files: names, keep }: UploadOptions<Kept>,
): Promise<Upload<Kept>> {
  const type = request.headers.get('content-type') ?? ''
  if (!/^multipart\/form-data;.*boundary=/is.test(type) || !request.body) throw wrong('must be multipart/form-data')
  const form = await createForm({
    headers: { 'content-type': type },
    limits: { fieldSize: MAX_FIELD_BYTES, parts: MAX_PARTS, headerPairs: 20 },
    isPartAFile: name => name !== undefined && names.includes(name),
  })
  const upload: Upload<Kept> = { fields: new Map(), files: new Map() }
  const keeping: Promise<void>[] = []
  const stop = new AbortController()
  const refuse = (error: unknown) => stop.abort(error)
  let fieldBytes = 0

  form.on('field', (name, text, _, isCut) => {
    fieldBytes += text.length
    try {
      takeMemory(request, text.length)
    } catch (error) {
      return refuse(error)
    }
    if (isCut || fieldBytes > MAX_FIELD_BYTES) refuse(tooLarge(name))
    else if (upload.fields.has(name)) refuse(wrong('is there twice', name))
    else upload.fields.set(name, text)
  })
  form.on('file', (name, body) => {
    // Errors of the stream come as an event only, which a reader that has not begun would miss.
    body.on('error', error => body.destroy(error))
    stop.signal.addEventListener('abort', () => body.destroy())
    const kept = keep(name, body).then(
      file => {
        if (!upload.files.has(name)) return void upload.files.set(name, file)
        file[Symbol.dispose]()
        refuse(wrong('is there twice', name))
      },
      error => stop.abort(error),
    )
    keeping.push(kept)
  })
  form.on('partsLimit', () => refuse(wrong(`has more than ${MAX_PARTS} parts`)))

  try {
    await pipeline(Readable.fromWeb(movingBody(request) as never), form, {
      signal: AbortSignal.any([request.signal, stop.signal]),
    }).catch(error => {
      const reason = stop.signal.reason ?? (request.signal.aborted ? request.signal.reason : undefined)
      stop.abort(error)
      throw reason ?? wrong(`not a multipart form: ${messageOf(error)}`)
    })
    await Promise.all(keeping)
    stop.signal.throwIfAborted()
    return upload
  } catch (error) {
    await Promise.all(keeping)
    for (const file of upload.files.values()) file[Symbol.dispose]()
    throw error
  }
}

/**
 * Makes a reader of multipart forms. Rejects with invalid_request for a boundary that is not allowed, such as one that is longer
 * than a part's headers may be.
 */
export async function createForm(config: BusboyConfig) {
  const { Busboy } = await import('@fastify/busboy')
  try {
    return new Busboy(config)
  } catch (error) {
    throw wrong(`not a multipart form: ${messageOf(error)}`)
  }
}

function tooLarge(name: string): ApiError {
  const field = excerpt(name)
  return new ApiError('payload_too_large', `${field}: more than ${MAX_FIELD_BYTES} bytes of fields`, { field })
}

function wrong(what: string, name = 'body'): ApiError {
  const field = excerpt(name)
  return new ApiError('invalid_request', `${field}: ${what}`, { field })
}
