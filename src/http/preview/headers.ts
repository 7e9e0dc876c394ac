import { endToEnd, getValues, type Header, type ResponseHead } from '../../http1/head.ts'
import type { PreviewMapping } from './address.ts'
import { confineCookies, ownCookies } from './cookies.ts'
import type { Passage } from './forward.ts'

/** How a request goes to a preview under a path of this server. */
export const previewPassage = (request: Request, mapping: PreviewMapping): Passage => ({
  path: `${mapping.address.path || '/'}${new URL(request.url).search}`,
  headersInto: () => headersInto(request, mapping),
  headersOut: head => headersOut(head, mapping),
})

/** Headers that name the caller or its origin, that this server sets itself, or that are about its own connection. */
const withheld =
  /^(host|authorization|cookie|origin|referer|expect|forwarded|via|(x-)?(forwarded|auth|original|remote|webauth|client|cluster)-.*|x-(real-ip|api-key|access-token|amzn|goog|ms|azure|vercel|envoy|authentik|pomerium)(-.*)?|(cf|fly|tailscale)-.*|true-client-ip|sec-websocket-.*)$/

/** The caller's headers for the server in the sandbox, and the address under which the caller sees it. */
export function headersInto(request: Request, { address, port, origin }: PreviewMapping): Header[] {
  const { protocol, host } = new URL(origin)
  const cookie = ownCookies(request.headers.get('cookie'))
  const from = request.headers.get('origin')
  const passed = endToEnd([...request.headers].map(([name, value]): Header => [name, value]))
  return [
    ['host', `localhost:${port}`],
    ...passed.filter(([name]) => !withheld.test(name)),
    ...(cookie === undefined ? [] : [['cookie', cookie] as const]),
    // A page of a preview has no origin of its own. Its server gets its own origin, as in a browser without a preview.
    ...(from ? [['origin', from === 'null' || from === origin ? `http://localhost:${port}` : from] as const] : []),
    ['x-forwarded-host', host],
    ['x-forwarded-proto', protocol.slice(0, -1)],
    ['x-forwarded-prefix', address.prefix],
  ]
}

/**
 * A page from a sandbox is shown on this server's own origin. The policy gives it an origin of its own: it can read no
 * storage and no other preview, and sends no credentials.
 */
const POLICY = 'sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads'

/**
 * Headers that an answer may have: about its body and its use, and those that programs read. A list of forbidden headers
 * would never be complete: browsers learn new ones that act on a whole origin, fetch, or report to other hosts.
 */
const passed =
  /^(accept-(patch|post|ranges)|age|allow|content-(disposition|encoding|language|range|security-policy|type|digest)|cross-origin-(embedder|opener|resource)-policy|deprecation|digest|etag|expires|grpc-[a-z-]+|hx-[a-z-]+|last-modified|mcp-[a-z-]+|permissions-policy|pragma|preference-applied|ratelimit(-[a-z-]+)?|repr-digest|request-id|retry-after|server-timing|sunset|timing-allow-origin|traceresponse|tus-[a-z-]+|upload-[a-z-]+|vary|x-.+)$/

/** Headers with `x-` that command a proxy before this server, or make a browser fetch or trust more. */
export const refused =
  /^x-(accel-(?!buffering$)|sendfile|lighttpd-|litespeed-|reproxy-|proxy-|forwarded-|real-ip|esi|varnish|cache-tags?$|purge|surrogate|sourcemap|dns-prefetch-control|permitted-cross-domain-policies|ua-compatible)/

/** The answer's headers for the caller. */
export function headersOut(head: ResponseHead, mapping: PreviewMapping): Headers {
  const { address } = mapping
  const headers = new Headers()
  for (const [name, value] of endToEnd(head.headers)) {
    if (name === 'location' || name === 'content-location') headers.append(name, moveOut(value, mapping))
    else if (passed.test(name) && !refused.test(name)) headers.append(name, value)
  }
  headers.set('cache-control', toCacheControl(getValues(head.headers, 'cache-control')))
  for (const cookie of confineCookies(getValues(head.headers, 'set-cookie'), `${address.root}/`)) {
    headers.append('set-cookie', cookie)
  }
  headers.append('content-security-policy', POLICY)
  headers.set('referrer-policy', 'no-referrer')
  return headers
}

/** Translates a location inside the sandbox to the caller's path. Other locations stay as they are. */
function moveOut(location: string, { address: { prefix }, port, origin }: PreviewMapping): string {
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

/** Always private: a preview needs a key or a link, and a shared cache would ask for neither. */
function toCacheControl(values: readonly string[]): string {
  const words = values.flatMap(value => value.toLowerCase().split(',')).map(word => word.trim())
  // `no-cache="name"` is about one header; here it counts for the whole answer.
  const directives = words.map(word => (word.startsWith('no-cache=') ? 'no-cache' : word))
  return ['private', ...directives.filter(word => directive.test(word))].join(', ')
}
