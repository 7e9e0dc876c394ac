import type { ServerWebSocket, WebSocketHandler } from 'bun'
import { createMemory, type Loan } from '../async/shared-memory.ts'
import { bounds } from '../bounds.ts'
import { ApiError } from '../errors.ts'
import { getKey } from './caller.ts'
import { getContext } from './context.ts'

/** The other end of a WebSocket: a browser, or a program of the caller. */
export type Peer = Pick<ServerWebSocket, 'send' | 'close' | 'getBufferedAmount' | 'ping'>

/** How a route handles a WebSocket. None of these may throw. */
export interface SocketHandlers {
  open?(peer: Peer): void
  message(peer: Peer, data: string | Buffer): void
  /** Called when all that was sent has left the buffer. */
  drain?(peer: Peer): void
  /** Called once, also when the connection was lost. */
  close(peer: Peer, code: number, reason: string): void
}

/** Turns a request into a WebSocket. False when the request is not an upgrade. */
export type Upgrade = (request: Request, handlers: SocketHandlers, headers?: Headers) => boolean

/** What WebSockets use of the server, each within its key's share. */
export interface Sockets {
  upgrade: Upgrade
  /** Memory for messages that wait, shared by all sockets. Dispose of it when the socket has closed. */
  borrow(request: Request): Loan
  /** Awaited between two messages to the peer, so that other requests are answered meanwhile. */
  turn(request: Request): Promise<void> | undefined
}

/** Connects the server's WebSockets with the shares that each key has. `turn` resolves when it is the key's turn. */
export function createSockets(
  upgrade: Upgrade = () => false,
  turn: (key: string) => Promise<void> | undefined,
): Sockets {
  const messages = createMemory({ bytes: bounds.messagesBytes, freeBytes: bounds.smallBodyBytes })
  return {
    upgrade(request, handlers, headers) {
      const { received, share } = getContext(request)
      const close: SocketHandlers['close'] = (...ending) => {
        share?.[Symbol.dispose]()
        handlers.close(...ending)
      }
      return upgrade(received, { ...handlers, close }, headers)
    },
    borrow: request => messages.borrow(getKey(getContext(request))),
    turn: request => turn(getKey(getContext(request))),
  }
}

/** The largest message that a peer may send. */
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024

/** About how much memory a waiting message takes beside its bytes. */
export const WAITING_MESSAGE_BYTES = 512

/** For `Bun.serve`: each socket's data is its handlers. */
export const websocket: WebSocketHandler<SocketHandlers> = {
  maxPayloadLength: MAX_MESSAGE_BYTES,
  idleTimeout: 0,
  open: peer => peer.data.open?.(peer),
  message: (peer, data) => peer.data.message(peer, data),
  drain: peer => peer.data.drain?.(peer),
  close: (peer, code, reason) => peer.data.close(peer, code, reason),
}

/** The subprotocol that this server accepts. Browsers require the server to pick one that they offered. */
const PROTOCOL = 'threadbox'
const BEARER = 'bearer.'

const listProtocols = (request: Request): string[] =>
  (request.headers.get('sec-websocket-protocol') ?? '').split(',').map(name => name.trim())

/**
 * The request's credential, in the form of an `Authorization` header. A browser can set no header of a WebSocket, so it
 * offers the protocols `threadbox` and `bearer.TOKEN`: other than a query, these appear in no log and no history. Without
 * the first, Bun would answer with the second.
 */
export function readAuthorization(request: Request): string | null {
  const header = request.headers.get('authorization')
  if (header !== null || request.headers.get('upgrade')?.toLowerCase() !== 'websocket') return header
  const protocols = listProtocols(request)
  const token = protocols.includes(PROTOCOL) && protocols.find(name => name.startsWith(BEARER))
  return token ? `Bearer ${token.slice(BEARER.length)}` : null
}

/** The protocols that a server in a sandbox may see: all but ours, and never a token. */
export const listForeignProtocols = (request: Request): string[] =>
  listProtocols(request).filter(name => name !== '' && name !== PROTOCOL && !name.startsWith(BEARER))

/** The headers that accept a WebSocket's request. */
export const acceptHeaders = (request: Request): Headers =>
  new Headers(listProtocols(request).includes(PROTOCOL) ? { 'sec-websocket-protocol': PROTOCOL } : {})

/** The status of a request that has become a WebSocket. */
export const SWITCHING_PROTOCOLS = 101

/** Answers a request for a WebSocket. Throws invalid_request when the request is not an upgrade. */
export function upgradeToSocket(
  upgrade: Upgrade,
  request: Request,
  handlers: SocketHandlers,
  headers?: Headers,
): Response {
  if (!upgrade(request, whileAdmitted(request, handlers), headers))
    throw new ApiError('invalid_request', 'This endpoint is a WebSocket: the request must be an upgrade.')
  return new Response(null, { status: SWITCHING_PROTOCOLS })
}

/** How long a socket may outlive its key, token or link: while messages come, and while none come. */
const ADMITTED_MS = { used: 1000, silent: 10_000 } as const
/** The close code of RFC 6455 for a policy violation. */
const REFUSED = 1008

/** Closes a socket whose key, token or link has ended. */
function whileAdmitted(request: Request, handlers: SocketHandlers): SocketHandlers {
  let timer: Timer | undefined
  let checkedAt = performance.now()
  const check = (peer: Peer) => {
    checkedAt = performance.now()
    const isValid = getContext(request).admission?.isValid() ?? false
    if (!isValid) peer.close(REFUSED, 'The key, token or link has ended.')
    return isValid
  }
  return {
    ...handlers,
    open(peer) {
      timer = setInterval(() => check(peer), ADMITTED_MS.silent)
      handlers.open?.(peer)
    },
    message(peer, data) {
      if (performance.now() - checkedAt < ADMITTED_MS.used || check(peer)) handlers.message(peer, data)
    },
    close(peer, code, reason) {
      clearInterval(timer)
      handlers.close(peer, code, reason)
    },
  }
}

/** The answer for `Bun.serve`: undefined once the request has become a WebSocket. */
export const answerOf = (response: Response): Response | undefined =>
  response.status === SWITCHING_PROTOCOLS ? undefined : response
