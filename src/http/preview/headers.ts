import { endToEnd, type Header, type ResponseHead, valuesOf } from '../../http1/head.ts'
import { confineCookies, ownCookies } from './cookies.ts'
import type { Ends } from './place.ts'

/** What says who the caller is or where from, what is ours to say, and what this end has done already. */
const withheld =
  /^(host|authorization|cookie|origin|referer|expect|forwarded|via|(x-)?(forwarded|auth|original|remote|webauth|client|cluster)-.*|x-(real-ip|api-key|access-token|amzn|goog|ms|azure|vercel|envoy|authentik|pomerium)(-.*)?|(cf|fly|tailscale)-.*|true-client-ip|sec-websocket-.*)$/

/** The caller's headers for the server inside, which is told where it is seen from. */
export function headersInto(request: Request, { place, port, origin }: Ends): Header[] {
  const { protocol, host } = new URL(origin)
  const cookie = ownCookies(request.headers.get('cookie'))
  const from = request.headers.get('origin')
  const passed = endToEnd([...request.headers].map(([name, value]): Header => [name, value]))
  return [
    ['host', `localhost:${port}`],
    ...passed.filter(([name]) => !withheld.test(name)),
    ...(cookie === undefined ? [] : [['cookie', cookie] as const]),
    // A page of a preview has no origin of its own. To its server it comes from where that server is.
    ...(from ? [['origin', from === 'null' || from === origin ? `http://localhost:${port}` : from] as const] : []),
    ['x-forwarded-host', host],
    ['x-forwarded-proto', protocol.slice(0, -1)],
    ['x-forwarded-prefix', place.prefix],
  ]
}

/**
 * A page from a sandbox is shown on this server's own origin, so it is made a stranger there: it can read no storage and
 * no other preview, and has no credential for anything.
 */
const POLICY = 'sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads'

/**
 * What an answer may say: of its body, of what may be done with it, and the families that programs read. A list of what
 * may not is never whole: browsers learn new headers that act on all of an origin, fetch or report elsewhere.
 */
const passed =
  /^(accept-(patch|post|ranges)|age|allow|content-(disposition|encoding|language|range|security-policy|type|digest)|cross-origin-(embedder|opener|resource)-policy|deprecation|digest|etag|expires|grpc-[a-z-]+|hx-[a-z-]+|last-modified|mcp-[a-z-]+|permissions-policy|pragma|preference-applied|ratelimit(-[a-z-]+)?|repr-digest|request-id|retry-after|server-timing|sunset|timing-allow-origin|traceresponse|tus-[a-z-]+|upload-[a-z-]+|vary|x-.+)$/

/** Of those of the form `x-`: what commands a proxy before us, or has a browser fetch or trust more. */
const refused =
  /^x-(accel-(?!buffering$)|sendfile|lighttpd-|litespeed-|reproxy-|proxy-|forwarded-|real-ip|esi|varnish|cache-tags?$|purge|surrogate|sourcemap|dns-prefetch-control|permitted-cross-domain-policies|ua-compatible)/

/** The answer's headers for the caller. */
export function headersOut(head: ResponseHead, ends: Ends): Headers {
  const { place } = ends
  const headers = new Headers()
  for (const [name, value] of endToEnd(head.headers)) {
    if (name === 'location' || name === 'content-location') headers.append(name, moved(value, ends))
    else if (passed.test(name) && !refused.test(name)) headers.append(name, value)
  }
  headers.set('cache-control', cacheControlOf(valuesOf(head.headers, 'cache-control')))
  for (const cookie of confineCookies(valuesOf(head.headers, 'set-cookie'), `${place.home}/`)) {
    headers.append('set-cookie', cookie)
  }
  headers.append('content-security-policy', POLICY)
  headers.set('referrer-policy', 'no-referrer')
  return headers
}

/** Where a place inside is seen from outside; other places stay as they are. */
function moved(location: string, { place: { prefix }, port, origin }: Ends): string {
  const url = URL.parse(location, `http://localhost:${port}`)
  const isPath = location.startsWith('/') && !location.startsWith('//')
  const isInside = url?.protocol === 'http:' && /^(localhost|127\.0\.0\.1|\[::1\]|0\.0\.0\.0)$/.test(url.hostname)
  const isHere = isInside && Number(url.port || 80) === port
  if (!url || !(isPath || (/^https?:/i.test(location) && (isHere || url.origin === origin)))) return location
  const path = `${url.pathname}${url.search}${url.hash}`
  return path.startsWith(`${prefix}/`) || path === prefix ? path : `${prefix}${path}`
}

const directive =
  /^(no-cache|no-store|no-transform|must-revalidate|must-understand|immutable|(max-age|stale-while-revalidate|stale-if-error)=\d{1,10})$/

/** For the caller alone: who sees a preview has shown a key or a link, and a cache between asks for neither. */
function cacheControlOf(values: readonly string[]): string {
  const words = values.flatMap(value => value.toLowerCase().split(',')).map(word => word.trim())
  // What is said of some headers only holds for all.
  const said = words.map(word => (word.startsWith('no-cache=') ? 'no-cache' : word))
  return ['private', ...said.filter(word => directive.test(word))].join(', ')
}
