import { outflow } from './outflow.ts'
import { createShares } from './shares.ts'
import { type SocketHandlers, SWITCHING_PROTOCOLS } from './socket.ts'
import { createTurns } from './turns.ts'

/** What is asked of the server that the app is behind; without it, connections stay as they are. */
export interface Connections {
  /** The request's connection is closed after so many seconds without a byte; 0: never. */
  timeout?(request: Request, seconds: number): void
  /** The same for all requests of one connection. */
  nameOf?(request: Request): string | undefined
}

export interface CarryOptions {
  key: string
  /** The answer may come in many pieces, whatever it says of itself. */
  isForeign: boolean
}

/** Requests that are being answered, as long as their answers take. */
export interface Traffic {
  /**
   * Answers a request of this key. A stream gives way to all else between its pieces, and ends when its reader takes
   * nothing. Throws what `answer` does, and rate_limit_exceeded when the key has too much open.
   */
  carry(request: Request, options: CarryOptions, answer: () => Promise<Response>): Promise<Response>
  /** The answer to a request that shows no key, as a run's token; it flows as others do. */
  flow(request: Request, response: Response): Response
  /** Resolves when it is the turn of this key. */
  turn(key: string): Promise<void>
  /** The request becomes a WebSocket, which counts as open up to its end. */
  keepOpen(request: Request, handlers: SocketHandlers): SocketHandlers
}

/** After this silence a connection that waits for a next request is closed. */
const KEPT_SECONDS = 60
const CONNECTIONS_PER_KEY = 512
/** With more requests of its key open than this, a new one gives way. */
const CROWD = 16
/** A reader that takes nothing for this long, or twice as long, is gone. */
const STALLED_MS = 2 * 60_000
/** The soonest that Bun closes a connection. */
const AT_ONCE_SECONDS = 1

export function createTraffic(requestsPerKey: number, connections: Connections): Traffic {
  const turns = createTurns()
  const shares = createShares({
    requestsPerKey,
    connectionsPerKey: CONNECTIONS_PER_KEY,
    keptMs: KEPT_SECONDS * 1000,
  })
  const open = new WeakMap<Request, Disposable>()

  function flowing(request: Request, key: string, response: Response, end: () => void): Response {
    if (!response.body || request.method === 'HEAD') {
      end()
      return response
    }
    const body = outflow(response.body, {
      turn: () => turns.next(key),
      stalledMs: STALLED_MS,
      onStalled: () => connections.timeout?.(request, AT_ONCE_SECONDS),
      onEnd: end,
    })
    // Nobody reads what comes after: the stream may never hear of it.
    request.signal.addEventListener('abort', end, { once: true })
    return new Response(body, response)
  }

  return {
    turn: key => turns.next(key),
    flow: (request, response) => flowing(request, '', response, () => connections.timeout?.(request, KEPT_SECONDS)),
    async carry(request, { key, isForeign }, answer) {
      // What ends things makes room, so it has room.
      const share = request.method === 'DELETE' ? undefined : shares.open(key)
      if (share) open.set(request, share)
      connections.timeout?.(request, 0)
      const end = () => {
        // Before the end of the answer is sent: then the connection is no longer this request's.
        connections.timeout?.(request, KEPT_SECONDS)
        share?.[Symbol.dispose]()
      }
      try {
        // Of hundreds that come at once each begins in a turn of its own.
        if (shares.count(key) > CROWD) await turns.next(key)
        const response = await answer()
        if (response.status === SWITCHING_PROTOCOLS) return response
        const connection = connections.nameOf?.(request)
        if (connection !== undefined && !shares.keeps(key, connection)) response.headers.set('connection', 'close')
        if (isForeign || isStream(response)) return flowing(request, key, response, end)
        end()
        return response
      } catch (error) {
        end()
        throw error
      }
    },
    keepOpen(request, handlers) {
      const share = open.get(request)
      return {
        ...handlers,
        close(...ending) {
          share?.[Symbol.dispose]()
          handlers.close(...ending)
        },
      }
    },
  }
}

const isStream = ({ headers }: Response): boolean =>
  /^(text\/event-stream|application\/x-ndjson|application\/octet-stream)/.test(headers.get('content-type') ?? '')
