import { expect, test } from 'bun:test'
import { patiently, startServer } from '../support/server.ts'

patiently()

test("the API's page opens without a key, from the executable alone, and asks nothing of another host", async () => {
  await using server = await startServer()
  const get = (path: string) => fetch(new URL(path, server.url))
  const page = await get('/v1/docs')
  expect(page.status).toBe(200)
  expect(page.headers.get('content-security-policy')).toContain("default-src 'none'; script-src 'self'")
  const html = await page.text()
  for (const [, inline = ''] of html.matchAll(/<script[^>]*>([\s\S]*?)<\/script>/g)) {
    const hash = new Bun.CryptoHasher('sha256').update(inline).digest('base64')
    if (inline !== '') expect(page.headers.get('content-security-policy')).toContain(`'sha256-${hash}'`)
    expect(inline.trim()).toBe('')
  }
  const asked = [...html.matchAll(/(?:src|href)="([^"]*)"/g)].map(([, url = '']) => url)
  expect(asked).toEqual(['/v1/docs/ui.js'])
  const script = await get('/v1/docs/ui.js')
  expect([script.status, script.headers.get('content-type')]).toEqual([200, 'text/javascript; charset=utf-8'])
  const text = await script.text()
  expect(() => new Function(text)).not.toThrow()
  expect(text).toContain('"operationId":"createSandbox"')
  const style = await get('/v1/docs/ui.css')
  expect([style.status, style.headers.get('content-type')]).toEqual([200, 'text/css; charset=utf-8'])
  expect(await style.text()).toContain('.swagger-ui')
})

test('the description itself wants a key, and so does what lies beside the page', async () => {
  await using server = await startServer()
  for (const path of ['/v1/openapi.json', '/v1/docs/other', '/v1/docs/ui.js/../../me']) {
    expect([path, (await fetch(new URL(path, server.url))).status]).toEqual([path, 401])
  }
})
