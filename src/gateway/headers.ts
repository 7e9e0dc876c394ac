import type { Provider } from './providers.ts'
import type { CallWire } from './routes.ts'

/** The caller's credentials, and headers about its own connection. */
const dropped = [
  'authorization',
  'x-api-key',
  'x-goog-api-key',
  'api-key',
  'cookie',
  'host',
  'content-length',
  'accept-encoding',
  'connection',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
  'forwarded',
  'via',
]

/** The token that a caller shows, in any of the ways that SDKs have. */
export function readToken(headers: Headers): string | undefined {
  const [, bearer] = /^Bearer +(\S+)$/i.exec(headers.get('authorization') ?? '') ?? []
  return headers.get('x-api-key') || bearer || headers.get('x-goog-api-key') || undefined
}

/** The headers of the call upstream: the caller's, with the real key in place of its token. */
export function upstreamHeaders(
  from: Headers,
  { key, priceList }: Provider,
  wire: CallWire,
  traceparent?: string,
): Headers {
  const headers = new Headers(from)
  const hopByHop = (from.get('connection') ?? '').split(',').map(name => name.trim().toLowerCase())
  for (const name of [...from.keys()]) {
    if (dropped.includes(name) || hopByHop.includes(name) || /^(proxy|x-forwarded)-/.test(name)) headers.delete(name)
  }
  // A provider without a price list is the operator's own, and only such a provider gets trace headers.
  if (traceparent !== undefined && priceList === undefined) {
    headers.set('traceparent', traceparent)
    headers.delete('tracestate')
  }
  // A compressed answer could not be metered while it passes.
  headers.set('accept-encoding', 'identity')
  if (wire === 'anthropic' && !headers.has('anthropic-version')) headers.set('anthropic-version', '2023-06-01')
  if (!key) return headers
  if (wire === 'anthropic') headers.set('x-api-key', key)
  else if (wire === 'gemini') headers.set('x-goog-api-key', key)
  else headers.set('authorization', `Bearer ${key}`)
  return headers
}

const passed = /^(content-type|cache-control|retry-after|retry-after-ms|x-should-retry|request-id|x-request-id)$/

/** The headers of the answer: those that a client acts on, and none about the operator's account. */
export function answerHeaders({ headers: from, status }: Response): Headers {
  const headers = new Headers([...from].filter(([name]) => passed.test(name) || name.includes('ratelimit')))
  // A key that the provider refuses stays refused.
  if (status === 401 || status === 403) headers.set('x-should-retry', 'false')
  return headers
}
