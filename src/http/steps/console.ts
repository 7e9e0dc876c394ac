import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Step } from './step.ts'

/** The directory of the page's files: embedded in the executable, or made by scripts/build-console. */
const embedded = join(import.meta.dir, 'console')
const directory = existsSync(embedded) ? embedded : join(import.meta.dir, '../../../.cache/console')

/** Paths that show the page, which reads the rest of the path itself. */
const PAGES = /^\/(?:$|(?:new|sandboxes|threads|agents|usage|settings)(?:\/|$))/
/** Names that contain a hash of the content. */
const ASSET = /^\/assets\/([\w-]+\.(js|css|svg|woff2))$/

const types: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  woff2: 'font/woff2',
}

/**
 * Allows only the page's own scripts, nothing from another host, and no frame around the page. The terminal writes style
 * elements. Previews are in frames; their own policy gives them no origin.
 */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data: blob:",
  "media-src 'self' blob:",
  "font-src 'self'",
  "connect-src 'self'",
  "frame-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** Serves the console's page. Its files stay in the executable until a browser asks for them. */
export const consolePage =
  (publicFiles = directory): Step =>
  async ({ request, preview }, next) => {
    const { method, url, headers } = request
    if (preview || (method !== 'GET' && method !== 'HEAD')) return await next()
    const { pathname } = new URL(url)
    if (pathname === '/docs') return new Response(null, { status: 302, headers: { location: '/v1/docs' } })
    const [, asset, kind = 'html'] = ASSET.exec(pathname) ?? []
    if (asset === undefined && !PAGES.test(pathname)) return await next()
    const file = Bun.file(join(publicFiles, `${asset ?? 'index.html'}.gz`))
    if (!(await file.exists())) return await next()
    const isZipped = /\bgzip\b/.test(headers.get('accept-encoding') ?? '')
    const body = isZipped ? file : Bun.gunzipSync(await file.bytes())
    return new Response(method === 'HEAD' ? null : body, {
      headers: {
        'content-type': types[kind] ?? 'application/octet-stream',
        ...(isZipped && { 'content-encoding': 'gzip' }),
        vary: 'accept-encoding',
        'cache-control': asset === undefined ? 'no-cache' : 'public, max-age=31536000, immutable',
        'content-security-policy': policy,
        'cross-origin-opener-policy': 'same-origin',
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
      },
    })
  }
