import type { ServerWebSocket, WebSocketHandler } from 'bun'
import { createMemory, type Loan } from '../async/shared-memory.ts'
import { bounds } from '../bounds.ts'
import { ApiError } from '../errors.ts'
import { keyOf } from './caller.ts'
import { getContext } from './context.ts'

/** The other end of a WebSocket: a browser, or a program of the caller. */
export type Peer = Pick<ServerWebSocket, 'send' | 'close' | 'getBufferedAmount' | 'ping'>

/** What a route makes of a WebSocket. Nothing here may throw. */
export interface SocketHandlers {
  open?(peer: Peer): void
  message(peer: Peer, data: string | Buffer): void
  /** What was sent has gone out. */
  drain?(peer: Peer): void
  /** Called once, also when the connection was lost. */
  close(peer: Peer, code: number, reason: string): void
}

/** Turns a request into a WebSocket. False when the request asks for none. */
export type Upgrade = (request: Request, handlers: SocketHandlers, headers?: Headers) => boolean

/** What WebSockets have of the server, each a bounded share. */
export interface Sockets {
  upgrade: Upgrade
  /** For messages that wait, of all sockets. To be disposed of when the socket has closed. */
  borrow(request: Request): Loan
  /** Waited for between two messages to the peer: others are answered meanwhile. */
  turn(request: Request): Promise<void>
}

/** Joins what the server can do with WebSockets and the shares that every key has. `turn` resolves in a key's turn. */
export function createSockets(upgrade: Upgrade = () => false, turn: (key: string) => Promise<void>): Sockets {
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
    borrow: request => messages.borrow(keyOf(getContext(request))),
    turn: request => turn(keyOf(getContext(request))),
  }
}

/** The largest message that a peer may send. */
const MAX_MESSAGE_BYTES = 16 * 1024 * 1024

/** What a message that waits takes in memory beside its bytes, about. */
export const WAITING_MESSAGE_BYTES = 512

/** For `Bun.serve`: every socket brings its own handlers. */
export const websocket: WebSocketHandler<SocketHandlers> = {
  maxPayloadLength: MAX_MESSAGE_BYTES,
  idleTimeout: 0,
  open: peer => peer.data.open?.(peer),
  message: (peer, data) => peer.data.message(peer, data),
  drain: peer => peer.data.drain?.(peer),
  close: (peer, code, reason) => peer.data.close(peer, code, reason),
}

/** What a server of ours answers to who asks for it; a browser that offers protocols wants one of them. */
const PROTOCOL = 'threadbox'
const BEARER = 'bearer.'

const protocolsOf = (request: Request): string[] =>
  (request.headers.get('sec-websocket-protocol') ?? '').split(',').map(name => name.trim())

/**
 * Who sends a request, as an `Authorization` header says it. A browser can set no header of a WebSocket: there it offers
 * the protocols `threadbox` and `bearer.TOKEN`, which other than a query end up in no log and no history. Without the
 * first, Bun would answer with the second.
 */
export function authorizationOf(request: Request): string | null {
  const header = request.headers.get('authorization')
  if (header !== null || request.headers.get('upgrade')?.toLowerCase() !== 'websocket') return header
  const protocols = protocolsOf(request)
  const token = protocols.includes(PROTOCOL) && protocols.find(name => name.startsWith(BEARER))
  return token ? `Bearer ${token.slice(BEARER.length)}` : null
}

/** What is offered to a server that is not ours: nothing that is said to us, least of all a token. */
export const foreignProtocolsOf = (request: Request): string[] =>
  protocolsOf(request).filter(name => name !== '' && name !== PROTOCOL && !name.startsWith(BEARER))

/** The headers of the answer to a WebSocket's request. */
export const acceptance = (request: Request): Headers =>
  new Headers(protocolsOf(request).includes(PROTOCOL) ? { 'sec-websocket-protocol': PROTOCOL } : {})

/** The status of a request that has become a WebSocket. */
export const SWITCHING_PROTOCOLS = 101

/** Answers a route that is a WebSocket. Throws invalid_request when the request asks for none. */
export function upgraded(upgrade: Upgrade, request: Request, handlers: SocketHandlers, headers?: Headers): Response {
  if (!upgrade(request, whileAdmitted(request, handlers), headers))
    throw new ApiError('invalid_request', 'Here is a WebSocket: ask to upgrade.')
  return new Response(null, { status: SWITCHING_PROTOCOLS })
}

/** How long a socket may go on with a key, token or link that is no good any more: while it is used, and while it is not. */
const ADMITTED_MS = { used: 1000, silent: 10_000 } as const
/** By RFC 6455: it breaks a policy. */
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

/** What `Bun.serve` wants to be given: nothing, once the request is a WebSocket. */
export const answerOf = (response: Response): Response | undefined =>
  response.status === SWITCHING_PROTOCOLS ? undefined : response
