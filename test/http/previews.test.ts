import { beforeAll, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { removeExpired } from '../../src/core/sandboxes/sweep.ts'
import { useApp } from '../support/app.ts'
import { askRaw, codeOf } from '../support/client.ts'
import { raw, startPreviewServer } from '../support/preview-server.ts'
import { until } from '../support/until.ts'

const app = useApp()
const PORT = 8100
let sandbox: string
let home: string

beforeAll(async () => {
  sandbox = await app.sandbox()
  home = `/v1/sandboxes/${sandbox}/ports/${PORT}`
  await startPreviewServer(app, sandbox, PORT)
})

const exists = async (path: string) =>
  (await app.ask('GET', `/v1/sandboxes/${sandbox}/files/exists?path=${path}`)).body === true
const get = (path: string, headers: Record<string, string> = {}) => app.request('GET', `${home}${path}`, { headers })
const seen = async (path: string, headers: Record<string, string> = {}) => (await get(path, headers)).text()

describe('a request', () => {
  test.each(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND'])('by %s goes as it is', async method => {
    const body = /^P[OUA]/.test(method) ? Buffer.from('any\0bytes\xff', 'latin1') : undefined
    const response = await app.request(method, `${home}/a%20b/%2F%2e/~x?q=%0d%0a&q=2`, {
      ...(body && { body: Uint8Array.from(body) }),
      headers: { 'x-own': 'kept', 'content-type': 'application/x-own' },
    })
    const text = await response.text()
    expect(text).toStartWith(`${method} /a%20b/%2F%2e/~x?q=%0d%0a&q=2 HTTP/1.1\r\nhost: localhost:${PORT}\r\n`)
    expect(text).toContain('\r\nx-own: kept\r\n')
    expect(text).toContain('\r\ncontent-type: application/x-own\r\n')
    expect(text.split('\n\n')[1]).toBe(body?.toString('latin1') ?? '')
  })

  test('says where it is seen from, and nothing of who asks: regression', async () => {
    const text = await seen('/', {
      cookie: 'session=other; tbc_own=1; tbc_two=2',
      origin: app.url,
      referer: `${app.url}/secret`,
      connection: 'x-hop',
      'x-hop': 'between',
      'x-forwarded-for': '10.1.2.3',
      'x-forwarded-prefix': '/forged',
      forwarded: 'for=10.1.2.3',
      'proxy-authorization': 'Basic eA==',
      expect: '',
    })
    const lines = text.split('\n\n')[0]?.split('\r\n') ?? []
    expect(lines).toContain(`x-forwarded-host: ${new URL(app.url).host}`)
    expect(lines).toContain('x-forwarded-proto: http')
    expect(lines).toContain(`x-forwarded-prefix: ${home}`)
    expect(lines).toContain('cookie: own=1; two=2')
    expect(lines).toContain(`origin: http://localhost:${PORT}`)
    expect(text).not.toMatch(/authorization|referer|session|10\.1\.2\.3|x-hop|forged/i)
    expect(text).not.toContain(app.key)
  })

  test.each([
    ['a page of a preview', 'null', `http://localhost:${PORT}`],
    ['another site', 'https://site.example', 'https://site.example'],
  ])('from %s has its origin', async (_, origin, wanted) => {
    expect(await seen('/', { origin })).toContain(`\r\norigin: ${wanted}\r\n`)
  })

  test.each(['with its length', 'in chunks'])('of 40 MB goes in %s', async how => {
    const bytes = crypto.getRandomValues(new Uint8Array(65_536))
    const whole = Buffer.concat(Array<Uint8Array>(610).fill(bytes))
    let pieces = 0
    const body =
      how === 'in chunks'
        ? new ReadableStream<Uint8Array>({
            pull: controller => (pieces++ < 610 ? controller.enqueue(bytes) : controller.close()),
          })
        : Uint8Array.from(whole)
    const answer = await app.ask('POST', `${home}/hash`, body)
    expect(answer.body).toBe(`${whole.byteLength} ${createHash('sha256').update(whole).digest('hex')}`)
  })

  test('that says a length and has no body, as a GET may, is not waited for: regression', async () => {
    const [host, port] = [new URL(app.url).host, new URL(app.url).port]
    const lines = [
      `GET ${home}/hash HTTP/1.1`,
      `host: ${host}`,
      `authorization: Bearer ${app.key}`,
      'connection: close',
      'content-length: 5',
    ]
    const answer = await askRaw(`http://127.0.0.1:${port}`, `${lines.join('\r\n')}\r\n\r\nhello`)
    // Its answer may come in chunks.
    expect([answer.status, /^(?:[0-9a-f]+\r\n)?(\d+) /.exec(answer.body)?.[1]]).toEqual([200, '0'])
  })

  test('is read while it is still sent', async () => {
    const body = new ReadableStream<Uint8Array>({
      async start(controller) {
        controller.enqueue(Buffer.from('first'))
        await until(() => exists('/tmp/first-part'))
        controller.enqueue(Buffer.from('second'))
        controller.close()
      },
    })
    expect(await (await app.request('POST', `${home}/first-part`, { body })).text()).toBe('whole')
  })

  test('whose sender goes away ends at the server', async () => {
    const abort = new AbortController()
    const gone = app.request('GET', `${home}/silent`, { signal: abort.signal }).catch(error => error.name)
    await until(() => exists('/tmp/silent-begun'))
    abort.abort()
    expect(await gone).toBe('AbortError')
    await until(() => exists('/tmp/silent-ended'))
  })

  test('to a server that does not read waits', async () => {
    const abort = new AbortController()
    let sent = 0
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        sent += 1_000_000
        controller.enqueue(new Uint8Array(1_000_000))
      },
    })
    const gone = app.request('POST', `${home}/deaf`, { body, signal: abort.signal }).catch(() => 'gone')
    await until(() => exists('/tmp/deaf-begun'))
    let before = -1
    await until(async () => {
      if (sent === before) return true
      before = sent
      await Bun.sleep(200)
      return false
    })
    expect(sent).toBeLessThan(60_000_000)
    abort.abort()
    expect(await gone).toBe('gone')
  })

  test('counts as a use of the sandbox', async () => {
    const short = await app.sandbox({ timeoutMs: 3_600_000 })
    const usedAt = () =>
      app.beside(db =>
        db.query<{ at: string }, []>(`select last_used_at as at from sandboxes where id = '${short}'`).get(),
      )
    app.beside(db => db.run(`update sandboxes set last_used_at = '2020-01-01T00:00:00.000Z' where id = '${short}'`))
    expect((await app.request('GET', `/v1/sandboxes/${short}/ports/${PORT}/`)).status).toBe(502)
    // Uses are written down before anything expires.
    await removeExpired(app.runtime)
    expect(Date.parse(usedAt()?.at ?? '')).toBeGreaterThan(Date.now() - 60_000)
  })
})

describe('an answer', () => {
  test('comes event by event', async () => {
    const response = await get('/sse')
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
    for (let number = 0; number < 3; number++) {
      expect(await reader.read()).toEqual({ done: false, value: `data: ${number}\n\n` })
      expect(await seen('/next')).toBe('released')
    }
    expect((await reader.read()).done).toBe(true)
  })

  test('that nobody reads makes the server wait, and ends with its reader', async () => {
    const response = await get('/flood')
    const reader = response.body!.getReader()
    await reader.read()
    const sent = async () => Number(await app.shell(sandbox, 'cat /tmp/flood'))
    let before = -1
    await until(async () => {
      const now = await sent()
      if (now === before) return true
      before = now
      await Bun.sleep(200)
      return false
    })
    expect(before).toBeLessThan(60_000_000)
    await reader.cancel()
    await until(() => exists('/tmp/flood-ended'))
  })

  test.each([200, 201, 204, 301, 304, 400, 401, 404, 418, 500, 503])('has the status %d', async status => {
    const response = await get(raw(`HTTP/1.1 ${status} Any`, 'x-own: 1', 'content-length: 0', '', ''))
    expect([response.status, response.headers.get('x-own'), await response.text()]).toEqual([status, '1', ''])
  })

  test('to HEAD has the length and no body', async () => {
    const response = await app.request('HEAD', `${home}${raw('HTTP/1.1 200 OK', 'content-length: 1234', '', '')}`)
    expect([response.status, response.headers.get('content-length')]).toEqual([200, '1234'])
  })

  test('after announcements is the last', async () => {
    const lines = ['HTTP/1.1 103 Early', 'link: x', '', 'HTTP/1.1 100 Continue', '', 'HTTP/1.1 200 OK', '', 'body']
    expect(await seen(raw(...lines))).toBe('body')
  })

  test('keeps its own headers, each of them', async () => {
    const lines = [
      'etag: "1"',
      'cache-control: max-age=9',
      'content-encoding: x-own',
      'x-a: 1',
      'x-a: 2',
      'vary: accept',
    ]
    const { headers } = await get(raw('HTTP/1.1 200 OK', ...lines, 'content-length: 0', '', ''))
    expect(
      Object.fromEntries([...headers].filter(([name]) => !/^(date|content-length|referrer|content-sec)/.test(name))),
    ).toEqual({
      etag: '"1"',
      'cache-control': 'private, max-age=9',
      'content-encoding': 'x-own',
      'x-a': '1, 2',
      vary: 'accept, origin',
    })
  })

  const places: [string, string][] = [
    ['/login?x=1#y', 'PREFIX/login?x=1#y'],
    ['next', 'next'],
    ['../up', '../up'],
    ['?q', '?q'],
    [`http://localhost:${PORT}/a`, 'PREFIX/a'],
    [`http://127.0.0.1:${PORT}`, 'PREFIX/'],
    [`http://[::1]:${PORT}/a?b`, 'PREFIX/a?b'],
    [`http://0.0.0.0:${PORT}/a`, 'PREFIX/a'],
    ['SELF/a', 'PREFIX/a'],
    ['SELFPREFIX/a', 'PREFIX/a'],
    ['PREFIX/a', 'PREFIX/a'],
    [`http://localhost:${PORT + 1}/a`, `http://localhost:${PORT + 1}/a`],
    ['https://site.example/a', 'https://site.example/a'],
    ['//site.example/a', '//site.example/a'],
  ]
  test.each(places)('that leads to %s', async (given, wanted) => {
    const fill = (text: string) => text.replace('SELF', app.url).replace('PREFIX', home)
    const response = await get(raw('HTTP/1.1 302 Found', `location: ${fill(given)}`, 'content-length: 0', '', ''))
    expect([response.status, response.headers.get('location')]).toEqual([302, fill(wanted)])
  })
})

test('without its last slash the address leads to the one with it', async () => {
  const response = await app.request('GET', `${home}?a=b`)
  expect([response.status, response.headers.get('location')]).toEqual([307, `${home}/?a=b`])
})

test.each(['0', '65536', '99999', '08', '-1', '1.5', 'http', '%20'])('port %s is none', async port => {
  const answer = await app.ask('GET', `/v1/sandboxes/${sandbox}/ports/${port}/`)
  expect([codeOf(answer), answer.body.error.field]).toEqual(['400 invalid_request', 'port'])
})

test('a port on which nothing listens is said to be so', async () => {
  const answer = await app.ask('GET', `/v1/sandboxes/${sandbox}/ports/8101/`)
  expect([codeOf(answer), answer.body.message]).toEqual(['502 port_unreachable', 'Nothing listens on port 8101.'])
})
