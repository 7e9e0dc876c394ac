import type { Preview } from '../../core/sandboxes/previews.ts'
import { type Framing, noBody } from '../../http1/body.ts'
import { type Answer, bodyOf, exchange } from '../../http1/exchange.ts'
import { valuesOf } from '../../http1/head.ts'
import { HttpError } from '../../http1/http-error.ts'
import { watchIdle } from '../../http1/tunnel.ts'
import { headersInto, headersOut } from './headers.ts'
import type { Ends } from './place.ts'

/** Carries one request to the server inside, on a connection of its own, and the answer back as it comes. */
export async function forward(preview: Preview, request: Request, ends: Ends): Promise<Response> {
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
    path: pathOf(request, ends),
    headers: headersInto(request, ends),
    framing: framingOf(request),
    body: watched(request.body ?? nothing()),
  })
  return responseOf({ ...answer, body: watched(answer.body) }, preview, request, ends)
}

/** The answer of a server inside, for the caller. */
export function responseOf(answer: Answer, { stream }: Preview, request: Request, ends: Ends): Response {
  const { head, length } = answer
  if (head.status > 599) throw new HttpError(502, `its answer has the status ${head.status}`)
  const headers = headersOut(head, ends)
  // Without a body the length says what a GET would have given.
  if (length === 'none')
    for (const value of valuesOf(head.headers, 'content-length')) headers.set('content-length', value)
  return new Response(bodyOf(answer, stream, request.signal), { status: head.status, headers })
}

export const pathOf = (request: Request, { place }: Ends): string =>
  `${place.path || '/'}${new URL(request.url).search}`

/** Bun has taken the caller's framing off, and the whole body of a GET. */
function framingOf({ headers, body }: Request): Framing {
  const length = headers.get('content-length')
  if (!body) return noBody
  return length !== null && /^\d{1,15}$/.test(length) ? { kind: 'length', bytes: Number(length) } : { kind: 'chunked' }
}

async function* nothing(): AsyncGenerator<Uint8Array> {}
