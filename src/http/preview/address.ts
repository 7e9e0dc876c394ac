import { LINK_PREFIX } from '../../core/sandboxes/preview-links.ts'
import { ApiError } from '../../errors.ts'

/** The parts of a preview's path. */
export interface PreviewAddress {
  /** The sandbox as the caller names it. */
  sandboxId: string
  port: string
  /** The signed text, when the request came by a link. */
  link?: string
  /** The path of the whole preview, without a slash at its end. */
  root: string
  /** The same with the link, when there is one: the caller's paths begin with it. */
  prefix: string
  /** The path for the server in the sandbox; empty when the caller's path has no slash after the prefix. */
  path: string
}

/** How a preview's addresses outside and inside the sandbox correspond. */
export interface PreviewMapping {
  address: PreviewAddress
  port: number
  /** The origin at which the caller reaches this server, as `https://example.com`. */
  origin: string
}

const pattern = new RegExp(`^(/v1/sandboxes/([^/]+)/ports/([^/]+))(?:/(${LINK_PREFIX}[^/]*))?(/.*)?$`)

/** Undefined for a request that is not for a preview. */
export function findPreviewAddress(request: Request): PreviewAddress | undefined {
  const [, root, sandboxId, port, link, path = ''] = pattern.exec(new URL(request.url).pathname) ?? []
  if (root === undefined || sandboxId === undefined || port === undefined) return undefined
  return { sandboxId, port, root, path, prefix: link ? `${root}/${link}` : root, ...(link && { link }) }
}

/** Throws invalid_request for a text that is not a port's number. */
export function parsePort(text: string): number {
  const port = Number(text)
  if (/^[1-9]\d{0,4}$/.test(text) && port < 65_536) return port
  throw new ApiError('invalid_request', 'port: must be a number from 1 to 65535', { field: 'port' })
}

/** The origin at which the caller reaches this server, and the path that a proxy puts before this server's paths. */
export function publicAddress(publicUrl: string | undefined, request: Request): { origin: string; base: string } {
  const url = new URL(publicUrl ?? request.url)
  if (publicUrl !== undefined) return { origin: url.origin, base: url.pathname.replace(/\/$/, '') }
  const isSecure = request.headers.get('x-forwarded-proto') === 'https'
  return { origin: isSecure ? `https://${url.host}` : url.origin, base: '' }
}

/** Throws invalid_request for a wrong port. */
export function mapPreview(publicUrl: string | undefined, request: Request, address: PreviewAddress): PreviewMapping {
  const { origin, base } = publicAddress(publicUrl, request)
  const { root, prefix } = address
  const outside = { ...address, root: `${base}${root}`, prefix: `${base}${prefix}` }
  return { address: outside, port: parsePort(address.port), origin }
}
