import type { Duplex } from 'node:stream'
import { lastChunk, writeChunk } from '../http1/body.ts'
import { type ByteSource, createByteSource, write } from '../http1/byte-source.ts'
import { formatHead, type Header, type RequestHead } from '../http1/head.ts'

/** The program in a sandbox that speaks to the proxy. */
export interface ProxyClient {
  socket: Duplex
  source: ByteSource
  /** Aborted when the connection closes. */
  signal: AbortSignal
}

export function createProxyClient(socket: Duplex): ProxyClient {
  const gone = new AbortController()
  socket.once('close', () => gone.abort())
  socket.on('error', () => {})
  return { socket, source: createByteSource(socket), signal: gone.signal }
}

/** Sends a short answer of the proxy itself. The status line has the reason too: many programs show only that line. */
export async function answerPlainly(
  client: ProxyClient,
  status: number,
  message: string,
  isHead = false,
): Promise<void> {
  const reason = message.replace(/[^\x20-\x7e]/g, ' ').slice(0, 300)
  const body = `threadbox: ${message}\n`
  const headers: Header[] = [
    ['content-type', 'text/plain; charset=utf-8'],
    ['content-length', String(Buffer.byteLength(body))],
    ['connection', 'close'],
  ]
  await write(client.socket, formatHead(`HTTP/1.1 ${status} ${reason}`, headers) + (isHead ? '' : body))
}

/**
 * Sends a head and a body in the framing that the client takes. Returns whether the connection can carry a next request.
 * `length` is the body's length: undefined when it is not known, and `none` when no body may follow the headers. `trailers` is
 * called when the body has ended, and its fields are sent where the framing allows them.
 */
export async function sendAnswer(
  client: ProxyClient,
  request: RequestHead,
  answer: {
    status: number
    reason: string
    headers: readonly Header[]
    length: number | undefined | 'none'
    trailers?(): readonly Header[]
  },
  body: AsyncIterable<Buffer>,
  keeps: boolean,
): Promise<boolean> {
  const { status, reason, headers, length } = answer
  const isChunked = length === undefined && request.version === '1.1'
  const isKept = keeps && (length !== undefined || isChunked)
  const framing: Header[] = [['connection', isKept ? 'keep-alive' : 'close']]
  if (typeof length === 'number') framing.unshift(['content-length', String(length)])
  if (isChunked) framing.unshift(['transfer-encoding', 'chunked'])
  await write(
    client.socket,
    Buffer.from(formatHead(`HTTP/1.1 ${status} ${reason}`, [...headers, ...framing]), 'latin1'),
  )
  if (length === 'none') return isKept
  try {
    for await (const piece of body) {
      if (piece.byteLength > 0) await (isChunked ? writeChunk : write)(client.socket, piece)
    }
  } catch (error) {
    // Part of the answer was sent: no error answer can follow it.
    throw new Error('the answer broke off', { cause: error })
  }
  if (isChunked) await write(client.socket, lastChunk(answer.trailers?.() ?? []))
  return isKept
}
