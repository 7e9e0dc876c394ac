import { endToEnd, type Header, type ResponseHead, valuesOf } from '../../egress/head.ts'
import { confineCookies, ownCookies } from './cookies.ts'
import type { Ends } from './place.ts'

/** What says who the caller is or where from, what is ours to say, and what this end has done already. */
const withheld =
  /^(host|authorization|cookie|origin|referer|expect|forwarded|via|x-forwarded-.*|x-real-ip|cf-.*|true-client-ip|sec-websocket-.*)$/

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

/** What acts on all of the origin, asks for a password in its name, commands a proxy before it, or is said below. */
const refused =
  /^(access-control-.*|set-cookie2?|clear-site-data|service-worker-allowed|strict-transport-security|public-key-pins.*|expect-ct|alt-svc|nel|report-to|reporting-endpoints|referrer-policy|origin-agent-cluster|accept-ch|critical-ch|www-authenticate|authentication-info|set-login|use-as-dictionary|speculation-rules|x-accel-(?!buffering).*|x-sendfile.*|x-lighttpd-.*|x-reproxy-.*|surrogate-.*|date)$/

/** The answer's headers for the caller. */
export function headersOut(head: ResponseHead, ends: Ends): Headers {
  const { place } = ends
  const headers = new Headers()
  for (const [name, value] of endToEnd(head.headers)) {
    if (name === 'location' || name === 'content-location') headers.append(name, moved(value, ends))
    else if (!refused.test(name)) headers.append(name, value)
  }
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
