import { beforeAll, describe, expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'
import { codeOf } from '../support/client.ts'
import { raw, startPreviewServer } from '../support/preview-server.ts'
import { until } from '../support/until.ts'

/** What a server in a sandbox may do to whoever looks at it, and to this server. */

const app = useApp()
const PORT = 8200
let sandbox: string
let home: string

beforeAll(async () => {
  sandbox = await app.sandbox()
  home = `/v1/sandboxes/${sandbox}/ports/${PORT}`
  await startPreviewServer(app, sandbox, PORT)
})

const get = (path: string) => app.request('GET', `${home}${path}`)
const exists = async (path: string) =>
  (await app.ask('GET', `/v1/sandboxes/${sandbox}/files/exists?path=${path}`)).body === true

describe('an answer that is none is 502: regression', () => {
  const ok = 'HTTP/1.1 200 OK'
  const answers: [string, string[]][] = [
    ['nothing', []],
    ['no HTTP', ['SSH-2.0-OpenSSH_9.2', '']],
    ['HTTP/2', ['HTTP/2 200', '', '']],
    ['half a head', [ok, 'x: y', '']],
    ['two lengths', [ok, 'content-length: 1', 'content-length: 2', '', 'ab']],
    ['a length and chunks', [ok, 'content-length: 1', 'transfer-encoding: chunked', '', '0', '', '']],
    ['a length that is no number', [ok, 'content-length: +5', '', 'abcde']],
    ['another encoding', [ok, 'transfer-encoding: gzip, chunked', '', '0', '', '']],
    ['a header with a line feed', [ok, 'x: a\nset-cookie: b=c', '', '']],
    ['a header with a carriage return', [ok, 'x: a\rset-cookie: b=c', '', '']],
    ['a header with a zero', [ok, 'x: a\0b', '', '']],
    ['a folded header', [ok, 'x: a', ' b', '', '']],
    ['a space before the colon', [ok, 'x : a', '', '']],
    ['a status of 999', ['HTTP/1.1 999 Odd', '', '']],
    ['a status of 99', ['HTTP/1.1 99 Odd', '', '']],
    ['another protocol', ['HTTP/1.1 101 Switching Protocols', 'upgrade: websocket', 'connection: upgrade', '', '']],
  ]
  test.each(answers)('%s', async (_, lines) => {
    const answer = await app.ask('GET', `${home}${raw(...lines)}`)
    expect(codeOf(answer)).toBe('502 port_unreachable')
    expect(answer.body.message).toStartWith(`The server on port ${PORT}: `)
    expect(answer.headers.get('set-cookie')).toBeNull()
  })

  test.each([
    ['/endless-headers', '/tmp/headers-ended'],
    ['/endless-interim', '/tmp/interim-ended'],
  ])('%s is cut', async (path, ended) => {
    expect(codeOf(await app.ask('GET', `${home}${path}`))).toBe('502 port_unreachable')
    await until(() => exists(ended))
  })
})

describe('a body that is broken breaks for its reader: regression', () => {
  const bodies: [string, string[]][] = [
    ['is shorter than it says', ['content-length: 10', '', 'abc']],
    ['has a chunk without a size', ['transfer-encoding: chunked', '', 'z', 'abc', '0', '', '']],
    ['has a chunk that is longer than it says', ['transfer-encoding: chunked', '', '2', 'abc', '0', '', '']],
    ['has no last chunk', ['transfer-encoding: chunked', '', '3', 'abc', '']],
    ['has a chunk of more than all', ['transfer-encoding: chunked', '', 'fffffffffffffffff', 'abc']],
  ]
  test.each(bodies)('%s', async (_, lines) => {
    const read = async () => (await get(raw('HTTP/1.1 200 OK', ...lines))).text()
    await expect(read()).rejects.toThrow()
    expect(await (await get('/fine')).text()).toStartWith('GET /fine')
  })
})

test('what follows an answer is nobody’s: regression', async () => {
  const second = ['HTTP/1.1 200 OK', 'content-length: 7', '', 'planted']
  for (const first of [
    ['content-length: 5', '', `first${second.join('\r\n')}`],
    ['transfer-encoding: chunked', '', '5', 'first', '0', '', ...second],
  ]) {
    const answers = await Promise.all(
      Array.from({ length: 5 }, async () =>
        (await get(raw('HTTP/1.1 200 OK', 'connection: keep-alive', ...first))).text(),
      ),
    )
    expect(answers).toEqual(Array<string>(5).fill('first'))
    expect(await (await get('/fine')).text()).toStartWith('GET /fine')
  }
})

test('a page is a stranger on this origin, whatever it says of itself: regression', async () => {
  const lines = [
    'content-type: text/html',
    "content-security-policy: default-src 'self'",
    'access-control-allow-origin: https://evil.example',
    'access-control-allow-credentials: true',
    'service-worker-allowed: /',
    'clear-site-data: "*"',
    'strict-transport-security: max-age=9',
    'referrer-policy: unsafe-url',
    'nel: {}',
    'report-to: {}',
    'reporting-endpoints: x="https://evil.example"',
    'www-authenticate: Basic realm="threadbox"',
    'alt-svc: h3=":443"',
    'x-accel-redirect: /internal',
    'x-sendfile: /etc/passwd',
    'x-litespeed-location: /internal',
    'x-sourcemap: https://evil.example/map',
    'sourcemap: https://evil.example/map',
    'link: <https://evil.example>; rel=preload; as=script',
    'refresh: 0; url=https://evil.example',
    'server: threadbox',
    'set-login: logged-in',
    'origin-agent-cluster: ?1',
    'content-security-policy-report-only: report-uri https://evil.example',
    'cdn-cache-control: public',
    'surrogate-control: max-age=9',
    'some-header-of-tomorrow: all',
  ]
  const { headers } = await get(raw('HTTP/1.1 200 OK', ...lines, 'content-length: 0', '', ''))
  expect(headers.get('content-security-policy')).toBe(
    "default-src 'self', sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads",
  )
  expect(headers.get('referrer-policy')).toBe('no-referrer')
  const names = lines.map(line => line.split(':')[0] ?? '')
  expect(names.filter(name => headers.has(name))).toEqual([
    'content-type',
    'content-security-policy',
    'referrer-policy',
  ])
})

describe('an answer is for its caller alone: regression', () => {
  const said: [string, string[], string][] = [
    ['nothing', [], 'private'],
    ['public', ['public'], 'private'],
    ['public for a minute', ['Public, max-age=60'], 'private, max-age=60'],
    ['shared caches', ['public, s-maxage=600, immutable', 'proxy-revalidate'], 'private, immutable'],
    ['private for some headers', ['private="set-cookie", max-age=5'], 'private, max-age=5'],
    ['no cache for some headers', ['no-cache="x, y"'], 'private, no-cache'],
    ['no store', ['no-store, no-cache, must-revalidate'], 'private, no-store, no-cache, must-revalidate'],
    ['quotes without end', [`${'a="'.repeat(900)}, PUBLIC`], 'private'],
  ]
  test.each(said)('%s', async (_, given, wanted) => {
    const lines = given.map(value => `cache-control: ${value}`)
    const { headers } = await get(raw('HTTP/1.1 200 OK', ...lines, 'content-length: 0', '', ''))
    expect(headers.get('cache-control')).toBe(wanted)
  })
})

describe('cookies of a server inside: regression', () => {
  const cookies: [string, string | null][] = [
    ['a=1', 'tbc_a=1; Path=HOME/; SameSite=Lax'],
    ['a=1; Path=/', 'tbc_a=1; Path=HOME/; SameSite=Lax'],
    [
      'a=1; Domain=example.com; Path=/v1; HttpOnly; Max-Age=60',
      'tbc_a=1; Path=HOME/; HttpOnly; Max-Age=60; SameSite=Lax',
    ],
    ['a=1; SameSite=None; Secure', 'tbc_a=1; Path=HOME/; Secure; SameSite=Lax'],
    [
      'a=1; SameSite=Strict; Expires=Wed, 21 Oct 2037 07:28:00 GMT',
      'tbc_a=1; Path=HOME/; SameSite=Strict; Expires=Wed, 21 Oct 2037 07:28:00 GMT',
    ],
    ['__Host-a=1', 'tbc___Host-a=1; Path=HOME/; SameSite=Lax'],
    ['tbc_a=1', 'tbc_tbc_a=1; Path=HOME/; SameSite=Lax'],
    ['=1', null],
    ['no-pair', null],
    ['a b=1', null],
    [`a=${'x'.repeat(5000)}`, null],
  ]
  test.each(cookies)('%s', async (given, wanted) => {
    const { headers } = await get(raw('HTTP/1.1 200 OK', `set-cookie: ${given}`, 'content-length: 0', '', ''))
    expect(headers.get('set-cookie')).toBe(wanted?.replace('HOME', home) ?? null)
  })

  test('come back to it alone, and are at most fifty', async () => {
    const many = Array.from({ length: 60 }, (_, index) => `set-cookie: c${index}=${index}`)
    const { headers } = await get(raw('HTTP/1.1 200 OK', ...many, 'content-length: 0', '', ''))
    const jar = headers.getSetCookie()
    expect(jar).toHaveLength(50)
    const cookie = [jar[0]?.split(';')[0], 'other=secret', jar[1]?.split(';')[0]].join('; ')
    const text = await (await app.request('GET', `${home}/`, { headers: { cookie } })).text()
    expect(text).toContain('\r\ncookie: c0=0; c1=1\r\n')
    expect(text).not.toContain('secret')
  })
})
