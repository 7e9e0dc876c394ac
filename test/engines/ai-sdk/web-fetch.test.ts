import { afterAll, expect, test } from 'bun:test'
import type { ToolContext } from '../../../plugins/ai-sdk/tools/tool.ts'
import { webFetch } from '../../../plugins/ai-sdk/tools/web-fetch.ts'
import { createPermissions } from '../../../src/core/permissions/decide.ts'
import { errorOf } from './tools.ts'

const page = `<!doctype html><html><head><title>T</title><style>p{}</style></head><body>
<h1>Head &amp; line</h1><script>alert(1)</script><p>One <b>two</b>.</p><ul><li>a</li><li>b &#8364;</li></ul>
<a href="https://example.com/x">link</a></body></html>`

const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch(request) {
    switch (new URL(request.url).pathname) {
      case '/page':
        return new Response(page, { headers: { 'content-type': 'text/html; charset=utf-8' } })
      case '/plain':
        return new Response('plain <b>text</b>', { headers: { 'content-type': 'text/plain' } })
      case '/binary':
        return new Response(new Uint8Array([1, 0, 2]))
      case '/huge':
        return new Response('y'.repeat(20_000_000), { headers: { 'content-type': 'text/plain' } })
      case '/moved':
        return Response.redirect(`http://127.0.0.1:${new URL(request.url).port}/plain`)
      case '/away':
        return Response.redirect(`http://localhost:${new URL(request.url).port}/plain`)
      case '/round':
        return Response.redirect(`http://127.0.0.1:${new URL(request.url).port}/round`)
      case '/hang':
        return new Promise<Response>(() => {})
      default:
        return new Response('gone', { status: 404 })
    }
  },
})
afterAll(() => server.stop(true))

const get = (path: string, more: Partial<ToolContext> = {}) =>
  webFetch.run({ url: path.startsWith('/') ? `http://127.0.0.1:${server.port}${path}` : path }, {
    ...{ signal: new AbortController().signal, fetch },
    ...more,
  } as ToolContext)

test('a page is text: no scripts, headings and items marked, links with their addresses', async () => {
  const text = String(await get('/page'))
    .split('\n')
    .slice(2)
    .join('\n')
  expect(text).toBe('# Head & line\n\nOne two.\n\n- a\n\n- b €\n\nlink (https://example.com/x)')
})

test('what is no page is as it is', async () => {
  expect(String(await get('/plain'))).toEndWith('plain <b>text</b>')
})

const rules = (options: object, asks = false) => ({
  permissions: createPermissions({
    ...{ agent: options, chat: {}, asks, canAsk: true },
    place: { cwd: '/home/user', home: '/home/user' },
  }),
})

test('a redirect leads where the rules allow it, and nowhere else regression', async () => {
  expect(String(await get('/moved', rules({})))).toEndWith('plain <b>text</b>')
  expect(String(await get('/away', rules({})))).toEndWith('plain <b>text</b>')
  const denied = await errorOf(get('/away', rules({ deny: ['WebFetch(domain:localhost)'] })))
  expect(denied).toContain('The rule WebFetch(domain:localhost) denies this call of WebFetch.')
  const asked = await errorOf(get('/away', rules({ ask: ['WebFetch(domain:localhost)'] }, true)))
  expect(asked).toContain('call WebFetch with that address')
  expect(await errorOf(get('/round', rules({})))).toContain('redirects without end')
})

test('a large page is cut', async () => {
  const text = String(await get('/huge'))
  expect([text.length < 31_000, text.endsWith('The page is larger than 5 MB.]')]).toEqual([true, true])
})

test('what is no text, no address or not there is an error', async () => {
  expect(await errorOf(get('/binary'))).toContain('is not text')
  expect(await errorOf(get('/none'))).toContain('answered 404. gone')
  expect(await errorOf(get('file:///etc/passwd'))).toBe('Invalid URL: file:///etc/passwd')
})

test('only the fetch of the sandbox is used, and its refusal is told', async () => {
  const refuse = () => Promise.reject(new Error('the network rules forbid 127.0.0.1'))
  expect(await errorOf(get('/page', { fetch: refuse }))).toBe('the network rules forbid 127.0.0.1')
})

test('an abort ends it', async () => {
  expect(await errorOf(get('/hang', { signal: AbortSignal.timeout(50) }))).not.toBe('no error')
})
