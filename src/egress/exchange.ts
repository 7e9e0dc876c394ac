import type { Duplex } from 'node:stream'
import { chunkOf, type Framing, framingOf, LAST_CHUNK, noBody, readBody } from './body.ts'
import { formatHead, type Header, MAX_HEAD_BYTES, parseResponse, type ResponseHead } from './head.ts'
import { Refusal } from './refusal.ts'
import { sourceOf, write } from './source.ts'

export interface Outgoing {
  method: string
  /** Path and query. */
  path: string
  /** With the host, without framing. */
  headers: readonly Header[]
  framing: Framing
  body: AsyncIterable<Buffer>
}

export interface Incoming {
  head: ResponseHead
  /** Undefined: it ends with the connection, or is chunked. */
  length: number | undefined | 'none'
  body: AsyncGenerator<Buffer, void>
  /** Whether all of the request's body was sent. */
  isSent(): boolean
}

/**
 * One request on a fresh connection. Resolves with the final answer's head; `onInterim` sees those before it. The
 * caller destroys the connection when it is done. Throws a Refusal when the answer is none, or can be read in two ways.
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
  const source = sourceOf(upstream)
  for (;;) {
    const bytes = await source
      .readThrough('\r\n\r\n', MAX_HEAD_BYTES)
      .catch(error => toBadAnswer(unsent ?? error, unsent))
    if (!bytes) throw unsent instanceof Refusal ? unsent : new Refusal(502, 'it closed without an answer')
    const head = parseResponse(bytes)
    if (head.status === 101) throw new Refusal(502, 'it changed the protocol unasked')
    if (head.status < 200) {
      await onInterim(head)
      continue
    }
    const found = framingOf(head.headers, head.version, 502)
    const isEmpty = method === 'HEAD' || head.status === 204 || head.status === 304
    const how: Framing = isEmpty ? noBody : (found ?? { kind: 'until-close' })
    const length = isEmpty ? 'none' : how.kind === 'length' ? how.bytes : undefined
    return { head, length, body: readBody(source, how), isSent: () => isSent }
  }
}

async function send(upstream: Duplex, { framing, body }: Outgoing): Promise<void> {
  for await (const piece of body) {
    if (piece.byteLength > 0) await write(upstream, framing.kind === 'chunked' ? chunkOf(piece) : piece)
  }
  if (framing.kind === 'chunked') await write(upstream, LAST_CHUNK)
}

function toBadAnswer(error: unknown, unsent: unknown): never {
  if (unsent instanceof Refusal) throw unsent
  throw error instanceof Refusal ? new Refusal(502, `its answer: ${error.message}`) : new Refusal(502, 'it broke off')
}
