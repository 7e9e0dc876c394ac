import { swagger } from '@elysiajs/swagger'
import { Elysia } from 'elysia'
import style from 'swagger-ui-dist/swagger-ui.css' with { type: 'file' }
import script from 'swagger-ui-dist/swagger-ui-bundle.js' with { type: 'file' }
import { DESCRIPTION, PAGE, SCRIPT, STYLE } from './docs-paths.ts'
import { describeApi, type Route } from './document.ts'

/** The hash of the plugin's one inline script. It is white space: its element only holds the page's settings. */
const BLANK_SCRIPT = "'sha256-TcUB1mzXiQO4GxpTRZ0EMpOXKMU3u+n/q1WrgVIcs1I='"

/** The page loads nothing from other hosts, and no frame may show it: users type keys into it. */
const headers = {
  'content-security-policy': `default-src 'none'; script-src 'self' ${BLANK_SCRIPT}; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
}

const hidden = { detail: { hide: true } } as const

/** The API's description, and the page that shows it with Swagger UI. The page's parts are in the executable. */
export function docsPages(routes: readonly Route[], publicUrl: string | undefined) {
  const api = describeApi(routes, publicUrl)
  const pages = swagger({
    path: PAGE,
    specPath: DESCRIPTION,
    documentation: api as never,
    // This excludes the plugin's own description of the routes, which has wrong content types and no answers.
    exclude: /^/,
    // The page loads this in place of its default viewer.
    scalarCDN: SCRIPT,
  })
  return new Elysia()
    .onAfterHandle({ as: 'scoped' }, ({ set }) => {
      Object.assign(set.headers, headers)
    })
    .use(pages)
    .get(SCRIPT, async () => text(`${await Bun.file(script).text()}\n;${starter(api)}`, 'text/javascript'), hidden)
    .get(STYLE, () => text(Bun.file(style), 'text/css'), hidden)
}

const text = (body: string | Blob, type: string) =>
  new Response(body, { headers: { ...headers, 'content-type': `${type}; charset=utf-8`, 'cache-control': 'no-cache' } })

/** Draws the page. The description is part of the script: the API itself gives it only with a key. */
const starter = (api: object) => `
document.head.append(Object.assign(document.createElement('link'), { rel: 'stylesheet', href: '${STYLE}' }))
const root = document.body.appendChild(document.createElement('main'))
SwaggerUIBundle({ spec: ${JSON.stringify(api).replaceAll('<', '\\u003c')}, domNode: root, deepLinking: true, tryItOutEnabled: true, validatorUrl: null })
`
