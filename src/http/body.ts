import { ApiError } from '../errors.ts'

/** Of a JSON body. */
export const MAX_BODY_BYTES = 10 * 1024 * 1024

/** A request's JSON, whatever content type it says; null for an empty body. Throws payload_too_large, invalid_request. */
export async function readJson(request: Request): Promise<unknown> {
  if (Number(request.headers.get('content-length') ?? 0) > MAX_BODY_BYTES) throw tooLarge()
  const chunks: Uint8Array[] = []
  let byteLength = 0
  for await (const chunk of request.body ?? []) {
    byteLength += chunk.byteLength
    if (byteLength > MAX_BODY_BYTES) throw tooLarge()
    chunks.push(chunk)
  }
  if (byteLength === 0) return null
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'))
  } catch {
    throw new ApiError('invalid_request', 'body: not JSON')
  }
}

/** A route's parser: without one, Elysia reads nothing but what it has a content type for. */
export const jsonBody = ({ request }: { request: Request }): Promise<unknown> => readJson(request)

const tooLarge = () => new ApiError('payload_too_large', `body: more than ${MAX_BODY_BYTES} bytes`)
