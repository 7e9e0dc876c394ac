import type { Duplex } from 'node:stream'
import { chunkOf, type Framing, framingOf, LAST_CHUNK, noBody, readBody } from './body.ts'
import { type Source, sourceOf, write } from './byte-source.ts'
import { formatHead, type Header, MAX_HEAD_BYTES, parseResponse, type ResponseHead } from './head.ts'
import { HttpError } from './http-error.ts'

export interface Outgoing {
  method: string
  /** Path and query. */
  path: string
  /** With the host, without framing. */
  headers: readonly Header[]
  framing: Framing
  body: AsyncIterable<Buffer>
}

export interface Answer {
  head: ResponseHead
  /** Undefined: it ends with the connection, or is chunked. */
  length: number | undefined | 'none'
  body: AsyncGenerator<Buffer, void>
}

export interface Incoming extends Answer {
  /** Whether all of the request's body was sent. */
  isSent(): boolean
}

/** Heads before the final one; more come from no honest server. */
const MAX_INTERIM = 32

/**
 * One request on a fresh connection. Resolves with the final answer's head; `onInterim` sees those before it. The
 * caller destroys the connection when it is done. Throws an HttpError when the answer is none, or can be read in two ways.
 */
export async function exchange(
  upstream: Duplex,
  request: Outgoing,
  onInterim: (head: ResponseHead) => Promise<void> = async () => {},
): Promise<Incoming> {
  const { method, framing } = request
  const headers: Header[] = [...request.headers, ['connection', 'close']]
  if (framing.kind === 'chunked') headers.push(['transfer-encoding', 'chunked'])
  if (framing.kind === 'length' && (framing.bytes > 0 || !/^(GET|HEAD|OPTIONS|DELETE)$/.test(method))) {
    headers.push(['content-length', String(framing.bytes)])
  }
  await write(upstream, Buffer.from(formatHead(`${method} ${request.path} HTTP/1.1`, headers), 'latin1'))
  let isSent = false
  let unsent: unknown
  // Beside the answer: a server may answer before it has read all.
  send(upstream, request).then(
    () => (isSent = true),
    error => {
      unsent = error
      upstream.destroy()
    },
  )
  const answer = await readAnswer(sourceOf(upstream), method, onInterim).catch(error => {
    throw unsent instanceof HttpError ? unsent : error
  })
  if (answer.head.status === 101) throw new HttpError(502, 'it changed the protocol unasked')
  return { ...answer, isSent: () => isSent }
}

/** The final answer to a request of this method, or a 101. Throws an HttpError as `exchange` does. */
export async function readAnswer(
  source: Source,
  method: string,
  onInterim: (head: ResponseHead) => Promise<void> = async () => {},
): Promise<Answer> {
  for (let heads = 0; heads <= MAX_INTERIM; heads++) {
    const bytes = await source.readThrough('\r\n\r\n', MAX_HEAD_BYTES).catch(toBadAnswer)
    if (!bytes) throw new HttpError(502, 'it closed without an answer')
    const head = parseResponse(bytes)
    if (head.status < 200 && head.status !== 101) {
      await onInterim(head)
      continue
    }
    const found = framingOf(head.headers, head.version, 502)
    const isEmpty = method === 'HEAD' || head.status === 101 || head.status === 204 || head.status === 304
    const how: Framing = isEmpty ? noBody : (found ?? { kind: 'until-close' })
    const length = isEmpty ? 'none' : how.kind === 'length' ? how.bytes : undefined
    return { head, length, body: readBody(source, how) }
  }
  throw new HttpError(502, 'it announces its answer without end')
}

/** An answer's body at its reader's pace; null without one. The connection is destroyed at its end, or when it is cancelled. */
export function bodyOf(
  { length, body }: Answer,
  upstream: Duplex,
  signal: AbortSignal,
): ReadableStream<Uint8Array> | null {
  if (length === 'none') {
    upstream.destroy()
    return null
  }
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { value, done } = await body.next()
          if (!done) return controller.enqueue(new Uint8Array(value))
          upstream.destroy()
          controller.close()
        } catch (error) {
          upstream.destroy()
          controller.error(signal.aborted ? signal.reason : error)
        }
      },
      cancel: () => void upstream.destroy(),
    },
    { highWaterMark: 0 },
  )
}

async function send(upstream: Duplex, { framing, body }: Outgoing): Promise<void> {
  for await (const piece of body) {
    if (piece.byteLength > 0) await write(upstream, framing.kind === 'chunked' ? chunkOf(piece) : piece)
  }
  if (framing.kind === 'chunked') await write(upstream, LAST_CHUNK)
}

function toBadAnswer(error: unknown): never {
  throw error instanceof HttpError
    ? new HttpError(502, `its answer: ${error.message}`)
    : new HttpError(502, 'it broke off')
}
