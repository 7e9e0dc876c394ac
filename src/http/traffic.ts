import { createTurns } from '../async/turns.ts'
import type { AppServer } from './app-server.ts'
import { getKey } from './caller.ts'
import type { Flow } from './flow.ts'
import { outflow } from './outflow.ts'
import { createShares } from './shares.ts'
import { SWITCHING_PROTOCOLS } from './socket.ts'
import type { Step } from './steps/step.ts'

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
  /**
   * Resolves when it is this key's turn; undefined when the work may be done at once. `size` says how much of a turn it takes.
   */
  turn(key: string, size?: number): Promise<void> | undefined
}

/** A connection without a request is closed after this long. */
const KEPT_SECONDS = 60
const CONNECTIONS_PER_KEY = 512
/** A reader that takes nothing for this long, or up to twice as long, counts as gone. */
const STALLED_MS = 2 * 60_000
/** How long an answer may outlive its key, token or link. */
const ADMITTED_MS = 5000
/** How much of a turn a piece of an answer takes, besides the part for its bytes. */
const PIECE = 1 / 16
const TURN_BYTES = 256 * 1024
/** The shortest timeout that Bun has. */
const AT_ONCE_SECONDS = 1

export function createTraffic(requestsPerKey: number, server: AppServer): Traffic {
  const turns = createTurns()
  const shares = createShares({
    requestsPerKey,
    connectionsPerKey: CONNECTIONS_PER_KEY,
    keptMs: KEPT_SECONDS * 1000,
  })

  const createFlow = (request: Request, key: string, onEnd: () => void, isAdmitted?: () => boolean): Flow => {
    const over = new AbortController()
    if (request.signal.aborted) over.abort()
    request.signal.addEventListener('abort', () => over.abort(), { once: true })
    const timer = isAdmitted && setInterval(() => isAdmitted() || over.abort(), ADMITTED_MS)
    return {
      signal: over.signal,
      turn: bytes => turns.next(key, PIECE + bytes / TURN_BYTES),
      stalledMs: STALLED_MS,
      onStalled: () => server.timeout?.(request, AT_ONCE_SECONDS),
      onEnd() {
        clearInterval(timer)
        onEnd()
      },
    }
  }

  function flowing(request: Request, response: Response, flow: Flow): Response {
    if (response.body && request.method !== 'HEAD') {
      return new Response(outflow(response.body, flow, { isOpenEnded: isEvents(response) }), response)
    }
    flow.onEnd()
    return response
  }

  return {
    turn: turns.next,
    flow(request, response) {
      const onEnd = () => server.timeout?.(request, KEPT_SECONDS)
      return flowing(request, response, createFlow(request, '', onEnd))
    },
    async carry(context, next) {
      const { received, request, preview } = context
      const key = getKey(context)
      if (key === '') return await next()
      server.keyShown?.(received)
      const share = new DisposableStack()
      // A DELETE always has room: it ends things, and so makes room.
      if (request.method !== 'DELETE') share.use(shares.open(key))
      context.share = share
      server.timeout?.(received, 0)
      const end = () => {
        // Before the end of the answer is sent: after it the connection may carry another request.
        server.timeout?.(received, KEPT_SECONDS)
        share.dispose()
      }
      try {
        context.startFlow = () => createFlow(received, key, end, context.admission?.isValid)
        const response = await next()
        const { startFlow } = context
        if (response.status === SWITCHING_PROTOCOLS) return response
        const connection = server.nameOf?.(received)
        if (connection !== undefined && !shares.keeps(key, connection)) response.headers.set('connection', 'close')
        if (!startFlow) return response
        // A preview's answer may come in many pieces, whatever it says of itself.
        if (preview || isStream(response)) return flowing(received, response, startFlow())
        end()
        return response
      } catch (error) {
        end()
        throw error
      }
    },
  }
}

const isEvents = ({ headers }: Response): boolean =>
  headers.get('content-type')?.startsWith('text/event-stream') ?? false

/** An answer that says its length is there whole. */
const isStream = ({ headers }: Response): boolean =>
  !headers.has('content-length') &&
  /^(text\/event-stream|application\/x-ndjson|application\/(octet-stream|x-tar))/.test(
    headers.get('content-type') ?? '',
  )
