import type { Duplex } from 'node:stream'
import { type Framing, LAST_CHUNK, noBody, parseFraming, readBody, writeChunk } from './body.ts'
import { type ByteSource, createByteSource, write } from './byte-source.ts'
import { formatHead, type Header, MAX_HEAD_BYTES, parseResponse, type ResponseHead } from './head.ts'
import { HttpError } from './http-error.ts'

export interface OutgoingRequest {
  method: string
  /** Path and query. */
  path: string
  /** With `host`; without headers that frame the body, which `framing` says. */
  headers: readonly Header[]
  framing: Framing
  body: AsyncIterable<Buffer>
}

export interface Answer {
  head: ResponseHead
  /** The body's length; undefined when it is chunked or ends with the connection; `none` when no body may follow. */
  length: number | undefined | 'none'
  body: AsyncGenerator<Buffer, void>
}

export interface ExchangeAnswer extends Answer {
  /** Whether all of the request's body was sent. */
  isSent(): boolean
}

/** Interim heads (1xx) before the final one. No honest server sends more. */
const MAX_INTERIM = 32

/**
 * Sends one request on a fresh connection. Resolves once the final answer's head is there; `onInterim` gets those before
 * it. The caller destroys the connection at the end. Throws an HttpError for an answer that is not valid or ambiguous.
 *
 * The codec is our own: it works over any Duplex (node:http and fetch want to dial), and refuses what two servers could
 * read in two ways, by which requests are smuggled.
 */
export async function exchange(
  upstream: Duplex,
  request: OutgoingRequest,
  onInterim: (head: ResponseHead) => Promise<void> = async () => {},
): Promise<ExchangeAnswer> {
  const { method, framing } = request
  const headers: Header[] = [...request.headers, ['connection', 'close']]
  if (framing.kind === 'chunked') headers.push(['transfer-encoding', 'chunked'])
  if (framing.kind === 'length' && (framing.bytes > 0 || !/^(GET|HEAD|OPTIONS|DELETE)$/.test(method))) {
    headers.push(['content-length', String(framing.bytes)])
  }
  await write(upstream, Buffer.from(formatHead(`${method} ${request.path} HTTP/1.1`, headers), 'latin1'))
  let isSent = false
  let unsent: unknown
  // While the answer is read: a server may answer before it has read the whole body.
  send(upstream, request).then(
    () => (isSent = true),
    error => {
      unsent = error
      upstream.destroy()
    },
  )
  const answer = await readAnswer(createByteSource(upstream), method, onInterim).catch(error => {
    throw unsent instanceof HttpError ? unsent : error
  })
  if (answer.head.status === 101) throw new HttpError(502, 'it changed the protocol unasked')
  return { ...answer, isSent: () => isSent }
}

/** Reads the final answer to a request of this method; 101 counts as one. Throws an HttpError as `exchange` does. */
export async function readAnswer(
  source: ByteSource,
  method: string,
  onInterim: (head: ResponseHead) => Promise<void> = async () => {},
  onTrailers?: (fields: Header[]) => void,
): Promise<Answer> {
  for (let heads = 0; heads <= MAX_INTERIM; heads++) {
    const bytes = await source.readThrough('\r\n\r\n', MAX_HEAD_BYTES).catch(toBadAnswer)
    if (!bytes) throw new HttpError(502, 'it closed without an answer')
    const head = parseResponse(bytes)
    if (head.status < 200 && head.status !== 101) {
      await onInterim(head)
      continue
    }
    const found = parseFraming(head.headers, head.version, 502)
    const isEmpty = method === 'HEAD' || head.status === 101 || head.status === 204 || head.status === 304
    const how: Framing = isEmpty ? noBody : (found ?? { kind: 'until-close' })
    const length = isEmpty ? 'none' : how.kind === 'length' ? how.bytes : undefined
    return { head, length, body: readBody(source, how, onTrailers) }
  }
  throw new HttpError(502, 'it announces its answer without end')
}

/** An answer's body, read at its reader's pace; null when it has none. Its end and its cancellation destroy the connection. */
export function streamBody(
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

async function send(upstream: Duplex, { framing, body }: OutgoingRequest): Promise<void> {
  for await (const piece of body) {
    if (piece.byteLength > 0) await (framing.kind === 'chunked' ? writeChunk : write)(upstream, piece)
  }
  if (framing.kind === 'chunked') await write(upstream, LAST_CHUNK)
}

function toBadAnswer(error: unknown): never {
  throw error instanceof HttpError
    ? new HttpError(502, `its answer: ${error.message}`)
    : new HttpError(502, 'it broke off')
}
