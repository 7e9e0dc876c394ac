import { afterEach, expect, test } from 'bun:test'
import { parseRules } from '../../src/egress/rules.ts'
import { loopback, openBench, openPolicy, SANDBOX } from './support.ts'

const open: { close(): void }[] = []
afterEach(() => {
  for (const each of open.splice(0)) each.close()
})

async function bench(...input: Parameters<typeof openBench>) {
  const made = await openBench(...input)
  open.push(made)
  return made
}

function server(fetch: (request: Request) => Response | Promise<Response>): string {
  const made = Bun.serve({ hostname: '127.0.0.2', port: 0, fetch })
  open.push({ close: () => void made.stop(true) })
  return `http://127.0.0.2:${made.port}`
}

test('a fetch goes by the rules and gives a usual response', async () => {
  const url = server(
    async request => new Response(`${request.method} ${await request.text()}`, { headers: { 'x-a': '1' } }),
  )
  const { egress } = await bench(loopback)
  const response = await egress.fetch(SANDBOX, `${url}/a`, { method: 'POST', body: 'hello' })
  expect([response.status, response.headers.get('x-a'), response.url, await response.text()]).toEqual([
    200,
    '1',
    `${url}/a`,
    'POST hello',
  ])
})

test('a fetch of what is not allowed is forbidden, with the reason: regression', async () => {
  const { egress } = await bench(openPolicy, { 'inside.example': ['127.0.0.1'] })
  for (const url of ['http://127.0.0.1/', 'http://inside.example/', 'http://2130706433/', 'http://[::ffff:7f00:1]/']) {
    await expect(egress.fetch(SANDBOX, url)).rejects.toMatchObject({ code: 'forbidden' })
  }
  await expect(egress.fetch(SANDBOX, 'file:///etc/passwd')).rejects.toMatchObject({ code: 'invalid_request' })
})

test('each redirect is decided anew, and takes no credentials elsewhere: regression', async () => {
  const seen: (string | null)[] = []
  const last = server(request => {
    seen.push(request.headers.get('authorization'))
    return new Response('there')
  })
  const url = server(request => {
    const { pathname } = new URL(request.url)
    return Response.redirect(pathname === '/inside' ? 'http://127.0.0.1:1/' : last, 302)
  })
  const { egress } = await bench({ ...loopback, layers: [{ allow: parseRules(['127.0.0.2']), deny: [] }] })
  const init = { headers: { authorization: 'secret' } }
  expect(await (await egress.fetch(SANDBOX, url, init)).text()).toBe('there')
  expect(seen).toEqual([null])
  await expect(egress.fetch(SANDBOX, `${url}/inside`, init)).rejects.toMatchObject({ code: 'forbidden' })
  expect((await egress.fetch(SANDBOX, url, { redirect: 'manual' })).status).toBe(302)
})

test('redirects in a circle end', async () => {
  const url = server(request => Response.redirect(request.url, 302))
  const { egress } = await bench(loopback)
  await expect(egress.fetch(SANDBOX, url)).rejects.toMatchObject({ message: expect.stringContaining('without end') })
})

test('an abort ends a fetch with its reason, before and in the body', async () => {
  const body = () => new ReadableStream<Uint8Array>({ start: controller => controller.enqueue(Buffer.from('a')) })
  const hanging = server(() => new Promise<Response>(() => {}))
  const streaming = server(() => new Response(body()))
  const { egress } = await bench(loopback)
  const abort = new AbortController()
  const reason = new Error('enough')
  const waiting = egress.fetch(SANDBOX, hanging, { signal: abort.signal })
  const reader = (await egress.fetch(SANDBOX, streaming, { signal: abort.signal })).body!.getReader()
  await reader.read()
  abort.abort(reason)
  await expect(waiting).rejects.toBe(reason)
  await expect(reader.read()).rejects.toBe(reason)
})

test('a certificate for another name is not accepted: regression', async () => {
  const directory = (await import('node:fs')).mkdtempSync('/tmp/threadbox-cert-')
  open.push({ close: () => (require('node:fs') as typeof import('node:fs')).rmSync(directory, { recursive: true }) })
  const [key, cert] = [`${directory}/key.pem`, `${directory}/cert.pem`]
  const made = Bun.spawnSync([
    ...['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '1', '-subj', '/CN=other.example'],
    ...['-keyout', key, '-out', cert],
  ])
  expect(made.exitCode).toBe(0)
  const secure = Bun.serve({
    hostname: '127.0.0.2',
    port: 0,
    tls: { key: Bun.file(key), cert: Bun.file(cert) },
    fetch: () => new Response('never'),
  })
  open.push({ close: () => void secure.stop(true) })
  const { egress } = await bench(loopback, { 'a.example': ['127.0.0.2'] })
  await expect(egress.fetch(SANDBOX, `https://a.example:${secure.port}/`)).rejects.toMatchObject({
    message: expect.stringMatching(/certificate|self.signed/i),
  })
})
