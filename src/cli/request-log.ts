import type { Log } from '../core/runtime.ts'

type Answer<Given extends Response | undefined> = (request: Request) => Promise<Given>

/** Logs a line for each request once its response begins, without headers, bodies and queries. */
export const withRequestLog =
  <Given extends Response | undefined>(log: Log, answer: Answer<Given>): Answer<Given> =>
  async request => {
    const begun = performance.now()
    const response = await answer(request)
    const ms = Math.round(performance.now() - begun)
    // A WebSocket has taken over: there is no response.
    const requestId = response?.headers.get('x-request-id')
    const ids = requestId ? { requestId } : {}
    log(`${request.method} ${loggedPath(request.url)} ${response?.status ?? 101} ${ms} ms`, 'debug', ids)
    return response
  }

const MOST_CHARACTERS = 200

/** The path, without what follows a sandbox's port, and without a key that a caller put into it. */
function loggedPath(url: string): string {
  const { pathname } = new URL(url)
  const [, ours = pathname] = /^(\/v1\/sandboxes\/[^/]*\/ports\/[^/]*\/)./.exec(pathname) ?? []
  const shown = ours.replace(/\b(tb[a-z]|e2b)_[^/]*/g, '***')
  return shown.length > MOST_CHARACTERS ? `${shown.slice(0, MOST_CHARACTERS)}…` : shown
}
