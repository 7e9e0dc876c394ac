import type { OpenName } from '../../core/limits/limits.ts'
import type { Runtime } from '../../core/runtime.ts'
import { getKey } from '../caller.ts'
import type { RequestContext } from '../context.ts'
import { wantsEvents } from '../event-answer.ts'
import { isWebSocket } from '../preview/socket.ts'
import type { Traffic } from '../traffic.ts'
import type { Step } from './step.ts'

/** The requests that count as open work until they are answered. docs/limits.md has the same table. */
export const openRequests: readonly { counts: OpenName; method: string; path: RegExp }[] = [
  { counts: 'execs', method: 'POST', path: /^\/v1\/sandboxes\/[^/]+\/(exec|git\/clone|processes)\/?$/ },
  { counts: 'execs', method: 'POST', path: /^\/process.Process\/Start$/ },
  { counts: 'streams', method: 'POST', path: /^\/process.Process\/Connect$/ },
  { counts: 'streams', method: 'POST', path: /^\/filesystem.Filesystem\/WatchDir$/ },
  { counts: 'streams', method: 'GET', path: /^\/v1\/events\/?$/ },
  { counts: 'streams', method: 'GET', path: /^\/v1\/chat\/[^/]+\/[^/]+\/stream\/?$/ },
  { counts: 'streams', method: 'GET', path: /^\/v1\/sandboxes\/[^/]+\/processes\/[^/]+\/output\/?$/ },
]

/** How long a refusal is delayed, so that a caller who tries again at once takes little of the server's time. */
const HELD_MS = 200

/**
 * Counts each request of a key, token or link, and its open work until the answer has ended or its WebSocket has closed. Throws
 * rate_limit_exceeded before anything else happens.
 */
export function callerLimits({ limits }: Runtime, traffic: Pick<Traffic, 'turn'>): Step {
  const nextRelease = createReleases(HELD_MS)
  return async (context, next) => {
    const { admission, share } = context
    if (!admission) return await next()
    try {
      limits.request(admission.caller)
    } catch (error) {
      await nextRelease()
      await traffic.turn(getKey(context))
      throw error
    }
    for (const name of openedBy(context)) share?.use(limits.open(name, admission.caller))
    return await next()
  }
}

/** Makes a function whose promises all resolve within `everyMs`, with one timer for all. */
function createReleases(everyMs: number): () => Promise<void> {
  let next: Promise<void> | undefined
  return () => {
    next ??= Bun.sleep(everyMs).then(() => {
      next = undefined
    })
    return next
  }
}

function openedBy({ request, preview }: RequestContext): OpenName[] {
  const isStream = isWebSocket(request) || wantsEvents(request)
  if (preview) return isStream ? ['streams'] : []
  const { pathname } = new URL(request.url)
  const found = openRequests.filter(({ method, path }) => method === request.method && path.test(pathname))
  const names = found.map(({ counts }) => counts)
  return isStream ? [...new Set([...names, 'streams' as const])] : names
}
