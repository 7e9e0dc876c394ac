import { createHash, randomBytes } from 'node:crypto'
import type { Preview } from '../../core/sandboxes/previews.ts'
import { type ByteSource, createByteSource, write } from '../../http1/byte-source.ts'
import { readAnswer } from '../../http1/exchange.ts'
import { formatHead, getValues, type Header } from '../../http1/head.ts'
import { HttpError } from '../../http1/http-error.ts'
import { watchIdle } from '../../http1/tunnel.ts'
import {
  acceptHeaders,
  listForeignProtocols,
  type Peer,
  type SocketHandlers,
  type Sockets,
  upgradeToSocket,
  WAITING_MESSAGE_BYTES,
} from '../socket.ts'
import { createResponse, type Passage } from './forward.ts'
import { closeFrame, createFrame, type Message, opcodes, ProtocolError, readMessages } from './frames.ts'

/** The largest message, and the most bytes that may wait for the server: a browser cannot be made to wait. */
const MAX_BYTES = 16 * 1024 * 1024
/** Keeps proxies from cutting a silent connection, and finds a peer that is gone. */
const PING_EVERY_MS = 30_000
/** How long the other side may take to answer a close. */
const CLOSED_WITHIN_MS = 2000

/** The constant of RFC 6455 from which both sides compute the accept header. */
const KEY_SUFFIX = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11'

export const isWebSocket = ({ method, headers }: Request): boolean =>
  method === 'GET' && /(^|[\s,])websocket([\s,]|$)/i.test(headers.get('upgrade') ?? '')

/** Joins the caller's WebSocket to one of the server in the sandbox. When that refuses the upgrade, its answer is passed on. */
export async function joinSocket(
  preview: Preview,
  request: Request,
  passage: Passage,
  sockets: Sockets,
): Promise<Response> {
  const { stream } = preview
  const abort = () => void stream.destroy()
  request.signal.addEventListener('abort', abort)
  const key = randomBytes(16).toString('base64')
  const offered = listForeignProtocols(request)
  const headers: Header[] = [
    ...passage.headersInto(),
    ['connection', 'Upgrade'],
    ['upgrade', 'websocket'],
    ['sec-websocket-version', '13'],
    ['sec-websocket-key', key],
    ...(offered.length > 0 ? [['sec-websocket-protocol', offered.join(', ')] as const] : []),
  ]
  await write(stream, Buffer.from(formatHead(`GET ${passage.path} HTTP/1.1`, headers), 'latin1'))
  const source = createByteSource(stream)
  const idle = watchIdle([stream])
  const answer = await readAnswer(source, 'GET').finally(idle.stop)
  if (answer.head.status !== 101) return createResponse(answer, preview, request, passage)
  const protocol = agreedProtocol(answer.head.headers, key, offered)
  request.signal.removeEventListener('abort', abort)
  const reply = protocol === undefined ? acceptHeaders(request) : new Headers({ 'sec-websocket-protocol': protocol })
  return upgradeToSocket(sockets.upgrade, request, createHandlers(preview, source, request, sockets), reply)
}

/** Throws an HttpError when the server did not accept the WebSocket as it was offered. */
function agreedProtocol(headers: readonly Header[], key: string, offered: readonly string[]): string | undefined {
  const [accept] = getValues(headers, 'sec-websocket-accept')
  const wanted = createHash('sha1').update(`${key}${KEY_SUFFIX}`).digest('base64')
  if (accept !== wanted || getValues(headers, 'sec-websocket-extensions').length > 0) {
    throw new HttpError(502, 'its answer does not accept the WebSocket')
  }
  const [protocol] = getValues(headers, 'sec-websocket-protocol')
  if (protocol !== undefined && !offered.includes(protocol)) {
    throw new HttpError(502, 'it chose a WebSocket protocol that was not offered')
  }
  return protocol
}

function createHandlers(
  { stream, moved }: Preview,
  source: ByteSource,
  request: Request,
  { borrow, turn }: Sockets,
): SocketHandlers {
  const loan = borrow(request)
  let drained = Promise.withResolvers<void>()
  let isClosed = false
  let waiting = 0
  let ping: Timer | undefined

  /** Sends the close, and cuts the connection when it is not answered soon. */
  const leave = (code?: number, reason?: string) => {
    if (stream.destroyed) return
    stream.end(closeFrame(code, reason))
    setTimeout(() => stream.destroy(), CLOSED_WITHIN_MS).unref()
  }

  const deliver = async (peer: Peer, message: Exclude<Message, { kind: 'close' }>) => {
    if (message.kind === 'ping') {
      // A server that pings without end and reads no answers gets no more of them.
      if (stream.writableLength <= MAX_BYTES) stream.write(createFrame(opcodes.pong, message.bytes))
      return
    }
    drained = Promise.withResolvers()
    // Less than 0: the message waits in memory for the peer.
    if (peer.send(message.kind === 'text' ? message.text : message.bytes) < 0 && !isClosed) await drained.promise
  }

  const pump = async (peer: Peer) => {
    for await (const message of readMessages(source, MAX_BYTES, bytes => loan.grow(bytes))) {
      await turn(request)
      if (isClosed) continue
      moved()
      if (message.kind !== 'close') {
        await deliver(peer, message)
        continue
      }
      const { code, reason } = message
      if (code === 1005) peer.close()
      else peer.close(code, reason)
      leave(code === 1005 ? undefined : code)
    }
    while (await source.read()) {
      // The server has closed: what it still sends is ignored.
    }
    if (!isClosed) peer.close(1011, 'The server in the sandbox closed the connection.')
  }

  return {
    open(peer) {
      ping = setInterval(() => peer.ping(), PING_EVERY_MS)
      pump(peer)
        .catch(error => {
          const code = error instanceof ProtocolError ? error.code : 1011
          if (!isClosed) peer.close(code, 'The connection to the server in the sandbox failed.')
          leave(code)
        })
        .finally(() => stream.destroy())
    },
    message(peer, data) {
      moved()
      const [opcode, payload] = typeof data === 'string' ? [opcodes.text, Buffer.from(data)] : [opcodes.binary, data]
      if (stream.destroyed || stream.writableEnded) return
      const size = payload.byteLength + WAITING_MESSAGE_BYTES
      if (!loan.grow(size)) {
        peer.close(1013, 'Too many messages wait for servers that do not read.')
        stream.destroy()
        return
      }
      waiting += size
      stream.write(createFrame(opcode, payload), () => {
        waiting -= size
        loan.grow(-size)
      })
      if (waiting <= 2 * MAX_BYTES) return
      peer.close(1013, 'The server in the sandbox does not read its messages.')
      stream.destroy()
    },
    drain: () => drained.resolve(),
    close(_, code, reason) {
      isClosed = true
      loan[Symbol.dispose]()
      clearInterval(ping)
      drained.resolve()
      // 1006: the connection was lost without a close.
      leave(code === 1005 ? undefined : code === 1006 ? 1001 : code, reason)
    },
  }
}
