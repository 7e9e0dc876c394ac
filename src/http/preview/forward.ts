import type { Preview } from '../../core/sandboxes/previews.ts'
import { type Framing, noBody } from '../../http1/body.ts'
import { type Answer, exchange, streamBody } from '../../http1/exchange.ts'
import { getValues, type Header, type ResponseHead } from '../../http1/head.ts'
import { HttpError } from '../../http1/http-error.ts'
import { watchIdle } from '../../http1/tunnel.ts'

/** How a request goes into a sandbox, and its answer comes back. */
export interface Passage {
  /** The path with the query. */
  path: string
  headersInto(): Header[]
  headersOut(head: ResponseHead): Headers
}

/** Sends one request to the server in the sandbox, on a connection of its own, and passes the answer on as it comes. */
export async function forward(preview: Preview, request: Request, passage: Passage): Promise<Response> {
  const { stream } = preview
  const abort = () => void stream.destroy()
  request.signal.addEventListener('abort', abort)
  const idle = watchIdle([stream])
  stream.once('close', () => {
    idle.stop()
    request.signal.removeEventListener('abort', abort)
  })
  const watched = async function* (body: AsyncIterable<Uint8Array>) {
    for await (const piece of body) {
      idle.moved()
      preview.moved()
      yield Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength)
    }
  }
  const answer = await exchange(stream, {
    method: request.method,
    path: passage.path,
    headers: passage.headersInto(),
    framing: parseFraming(request),
    body: watched(request.body ?? nothing()),
  })
  return createResponse({ ...answer, body: watched(answer.body) }, preview, request, passage)
}

/** The caller's answer, made of the answer of the server in the sandbox. */
export function createResponse(answer: Answer, { stream }: Preview, request: Request, passage: Passage): Response {
  const { head, length } = answer
  if (head.status > 599) throw new HttpError(502, `its answer has the status ${head.status}`)
  const headers = passage.headersOut(head)
  // The answer to a HEAD gives the length that a GET would have.
  if (length === 'none')
    for (const value of getValues(head.headers, 'content-length')) headers.set('content-length', value)
  return new Response(streamBody(answer, stream, request.signal), { status: head.status, headers })
}

/** Bun has removed the caller's framing, and the body of a GET. */
function parseFraming({ headers, body }: Request): Framing {
  const length = headers.get('content-length')
  if (!body) return noBody
  return length !== null && /^\d{1,15}$/.test(length) ? { kind: 'length', bytes: Number(length) } : { kind: 'chunked' }
}

async function* nothing(): AsyncGenerator<Uint8Array> {}
