import { LINK_PREFIX } from '../../core/sandboxes/preview-links.ts'
import { ApiError } from '../../errors.ts'

/** Where a request for a preview goes, by its path. */
export interface PreviewPlace {
  /** As the caller names it. */
  sandboxId: string
  port: string
  /** The signed text, of one who came by a link. */
  link?: string
  /** Path of all that this port shows, without the last slash; and with the link, under which this caller sees it. */
  home: string
  prefix: string
  /** The path for the server inside; empty when the caller left the first slash out. */
  path: string
}

/** A preview as its two ends see it. */
export interface Ends {
  place: PreviewPlace
  port: number
  /** Where the caller reaches this server: `https://example.com`. */
  origin: string
}

const pattern = new RegExp(`^(/v1/sandboxes/([^/]+)/ports/([^/]+))(?:/(${LINK_PREFIX}[^/]*))?(/.*)?$`)

/** Undefined for a request of anything else. */
export function placeOf(request: Request): PreviewPlace | undefined {
  const [, home, sandboxId, port, link, path = ''] = pattern.exec(new URL(request.url).pathname) ?? []
  if (home === undefined || sandboxId === undefined || port === undefined) return undefined
  return { sandboxId, port, home, path, prefix: link ? `${home}/${link}` : home, ...(link && { link }) }
}

/** Throws invalid_request for what is no port's number. */
export function portOf(text: string): number {
  const port = Number(text)
  if (/^[1-9]\d{0,4}$/.test(text) && port < 65_536) return port
  throw new ApiError('invalid_request', 'port: must be a number from 1 to 65535', { field: 'port' })
}

/** Where the caller reaches this server, and the path that a proxy before it has put in front. */
export function seenFrom(publicUrl: string | undefined, request: Request): { origin: string; base: string } {
  const url = new URL(publicUrl ?? request.url)
  if (publicUrl !== undefined) return { origin: url.origin, base: url.pathname.replace(/\/$/, '') }
  const isSecure = request.headers.get('x-forwarded-proto') === 'https'
  return { origin: isSecure ? `https://${url.host}` : url.origin, base: '' }
}

/** Throws invalid_request for a port that is none. */
export function endsOf(publicUrl: string | undefined, request: Request, place: PreviewPlace): Ends {
  const { origin, base } = seenFrom(publicUrl, request)
  const { home, prefix } = place
  return { place: { ...place, home: `${base}${home}`, prefix: `${base}${prefix}` }, port: portOf(place.port), origin }
}
