import { ApiError } from '../errors.ts'

/**
 * The cookie of a signed-in browser. Browsers send a cookie to all ports of a host, so its name has the port: two servers on one
 * machine do not overwrite each other's. `__Host-` keeps other hosts of the same domain from setting it (RFC 6265bis).
 */
const cookieName = ({ isSecure, port }: Place) => `${isSecure ? '__Host-' : ''}threadbox-${port}`

interface Place {
  isSecure: boolean
  port: string
}

/** `publicUrl` is the address at which browsers reach this server when a proxy in front of it ends TLS. */
function placeOf(request: Request, publicUrl: string | undefined): Place {
  const url = new URL(publicUrl ?? request.url)
  const isSecure = url.protocol === 'https:'
  return { isSecure, port: url.port || (isSecure ? '443' : '80') }
}

/** The `Set-Cookie` header of a new session; an empty secret removes the cookie. */
export function sessionCookie(
  request: Request,
  publicUrl: string | undefined,
  secret: string,
  expiresAt: Date,
): string {
  const place = placeOf(request, publicUrl)
  const attributes = ['Path=/', `Expires=${expiresAt.toUTCString()}`, 'HttpOnly', 'SameSite=Strict']
  if (place.isSecure) attributes.push('Secure')
  return [`${cookieName(place)}=${secret}`, ...attributes].join('; ')
}

/**
 * Reads the session's secret from a request's cookie; undefined without a cookie. Throws forbidden for a request of another
 * origin's page, because a browser adds the cookie to such requests too.
 */
export function readSession(request: Request, publicUrl: string | undefined): string | undefined {
  const name = cookieName(placeOf(request, publicUrl))
  const pairs = (request.headers.get('cookie') ?? '').split(';').map(pair => pair.trim())
  const secret = pairs.find(pair => pair.startsWith(`${name}=`))?.slice(name.length + 1)
  if (!secret) return undefined
  if (!isSameOrigin(request, publicUrl))
    throw new ApiError('forbidden', 'A page of another origin cannot use the session.')
  return secret
}

/**
 * Whether a page of this server's own sent the request, or the user by typing its address. Browsers say so by `Sec-Fetch-Site`
 * on https and on this machine, and by `Origin` for everything that changes something, and for WebSockets.
 */
export function isSameOrigin(request: Request, publicUrl: string | undefined): boolean {
  const { method, headers } = request
  const isRead = (method === 'GET' || method === 'HEAD') && !headers.has('upgrade')
  const site = headers.get('sec-fetch-site')
  if (site !== null && site !== 'same-origin' && !(site === 'none' && isRead)) return false
  const origin = headers.get('origin')
  if (origin === null) return isRead
  // A proxy that ends TLS may send its own name for this server as the host; then the public URL is what browsers see.
  if (publicUrl !== undefined && origin === new URL(publicUrl).origin) return true
  return URL.parse(origin)?.host === headers.get('host')
}
