import type { AppServer } from './app-server.ts'
import { getKey } from './caller.ts'
import { outflow } from './outflow.ts'
import { createShares } from './shares.ts'
import { SWITCHING_PROTOCOLS } from './socket.ts'
import type { Step } from './steps/step.ts'
import { createTurns } from './turns.ts'

/** Requests that are being answered, as long as their answers take. */
export interface Traffic {
  /**
   * Counts a request of a key as open until its answer has ended. A stream gives way to all else between its pieces, and
   * ends when its reader takes nothing. Throws rate_limit_exceeded when the key has too much open. A request without a
   * key, as one for /health, passes: its connection and its answer are short.
   */
  carry: Step
  /** Passes on the answer to a request without a key, as one with a run's token, at its reader's pace. */
  flow(request: Request, response: Response): Response
  /** Resolves when it is this key's turn. */
  turn(key: string): Promise<void>
}

/** A connection without a request is closed after this long. */
const KEPT_SECONDS = 60
const CONNECTIONS_PER_KEY = 512
/** When a key has more requests open than this, a new one waits for its turn. */
const CROWD = 16
/** A reader that takes nothing for this long, or up to twice as long, counts as gone. */
const STALLED_MS = 2 * 60_000
/** The shortest timeout that Bun has. */
const AT_ONCE_SECONDS = 1

export function createTraffic(requestsPerKey: number, server: AppServer): Traffic {
  const turns = createTurns()
  const shares = createShares({
    requestsPerKey,
    connectionsPerKey: CONNECTIONS_PER_KEY,
    keptMs: KEPT_SECONDS * 1000,
  })

  function flowing(request: Request, key: string, response: Response, end: () => void): Response {
    if (!response.body || request.method === 'HEAD') {
      end()
      return response
    }
    const body = outflow(response.body, {
      turn: () => turns.next(key),
      stalledMs: STALLED_MS,
      onStalled: () => server.timeout?.(request, AT_ONCE_SECONDS),
      onEnd: end,
    })
    // When the client goes, the stream itself may not be told.
    request.signal.addEventListener('abort', end, { once: true })
    return new Response(body, response)
  }

  return {
    turn: key => turns.next(key),
    flow: (request, response) => flowing(request, '', response, () => server.timeout?.(request, KEPT_SECONDS)),
    async carry(context, next) {
      const { received, request, preview } = context
      const key = getKey(context)
      if (key === '') return await next()
      // A DELETE always has room: it ends things, and so makes room.
      const share = request.method === 'DELETE' ? undefined : shares.open(key)
      if (share) context.share = share
      server.timeout?.(received, 0)
      const end = () => {
        // Before the end of the answer is sent: after it the connection may carry another request.
        server.timeout?.(received, KEPT_SECONDS)
        share?.[Symbol.dispose]()
      }
      try {
        // Hundreds that come at once begin one by one, and others run in between.
        if (shares.count(key) > CROWD) await turns.next(key)
        const response = await next()
        if (response.status === SWITCHING_PROTOCOLS) return response
        const connection = server.nameOf?.(received)
        if (connection !== undefined && !shares.keeps(key, connection)) response.headers.set('connection', 'close')
        // A preview's answer may come in many pieces, whatever it says of itself.
        if (preview || isStream(response)) return flowing(received, key, response, end)
        end()
        return response
      } catch (error) {
        end()
        throw error
      }
    },
  }
}

const isStream = ({ headers }: Response): boolean =>
  /^(text\/event-stream|application\/x-ndjson|application\/octet-stream)/.test(headers.get('content-type') ?? '')
