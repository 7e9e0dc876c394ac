import type { Duplex } from 'node:stream'
import { chunkOf, LAST_CHUNK } from '../http1/body.ts'
import { type Source, sourceOf, write } from '../http1/byte-source.ts'
import { formatHead, type Header, type RequestHead } from '../http1/head.ts'

/** The program inside that asked, and what it asked last. */
export interface Client {
  socket: Duplex
  source: Source
  /** Aborted when the program is gone, or is cut. */
  signal: AbortSignal
}

export function clientOf(socket: Duplex): Client {
  const gone = new AbortController()
  socket.once('close', () => gone.abort())
  socket.on('error', () => {})
  return { socket, source: sourceOf(socket), signal: gone.signal }
}

/** A short answer of the proxy's own. The reason is in the status line too: many programs show nothing else of it. */
export async function answerPlainly(client: Client, status: number, words: string, isHead = false): Promise<void> {
  const reason = words.replace(/[^\x20-\x7e]/g, ' ').slice(0, 300)
  const body = `threadbox: ${words}\n`
  const headers: Header[] = [
    ['content-type', 'text/plain; charset=utf-8'],
    ['content-length', String(Buffer.byteLength(body))],
    ['connection', 'close'],
  ]
  await write(client.socket, formatHead(`HTTP/1.1 ${status} ${reason}`, headers) + (isHead ? '' : body))
}

/**
 * Sends a head and a body in the framing that the client takes. Returns whether the connection can carry a next request.
 * `length`: the body's when it is known; undefined is any; `none`: there is none, and the headers say all.
 */
export async function sendAnswer(
  client: Client,
  request: RequestHead,
  answer: { status: number; reason: string; headers: readonly Header[]; length: number | undefined | 'none' },
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
      if (piece.byteLength > 0) await write(client.socket, isChunked ? chunkOf(piece) : piece)
    }
  } catch (error) {
    // Part of the answer is out: a refusal cannot follow it.
    throw new Error('the answer broke off', { cause: error })
  }
  if (isChunked) await write(client.socket, LAST_CHUNK)
  return isKept
}
