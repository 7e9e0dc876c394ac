import { afterEach, expect, test } from 'bun:test'
import { all, until } from '../support.ts'
import { bind, closeAll, NAME, openHost, openHost2, openRawHost, openSecretBench, PLACEHOLDER, SECRET } from './host.ts'

/** Each way in which a secret could reach a host that it is not bound to. */

afterEach(closeAll)

/** A host that must never get the secret, and one that may. */
async function setUp(names: Record<string, string[]> = {}) {
  const [bench, own, other] = [await openSecretBench(names), await openHost(), await openHost(undefined, 'other.test')]
  bench.bound = [
    bind(own.authority),
    bind(own.authority, { name: 'ENV', as: { env: 'TOKEN' }, placeholder: PLACEHOLDER }),
  ]
  return { bench, own, other }
}

const request = (host: string, target = '/') =>
  `GET ${target} HTTP/1.1\r\nHost: ${host}\r\nX-Token: ${PLACEHOLDER}\r\nConnection: close\r\n\r\n`

test("a redirect is the program's to follow, and what it leads to gets no secret: regression", async () => {
  const { bench, own, other } = await setUp()
  const redirecting = await openHost((_, response) => {
    response.writeHead(302, { location: `https://${other.authority}/` }).end()
  })
  bench.bound = [...bench.bound, bind(redirecting.authority)]
  expect(await bench.say(redirecting.authority, request(redirecting.authority))).toContain(
    `location: https://${other.authority}/\r\n`,
  )
  const tunnel = await bench.tunnel(other.authority)
  const { connect } = await import('node:tls')
  const secure = connect({ socket: tunnel, servername: 'other.test', rejectUnauthorized: false })
  await new Promise(resolve => secure.once('secureConnect', resolve))
  secure.write(request(other.authority))
  await all(secure)
  expect(other.requests[0]?.headers).toMatchObject({ 'x-token': PLACEHOLDER })
  expect(other.requests[0]?.headers.authorization).toBeUndefined()
  expect(own.requests).toEqual([])
})

test.each([
  ['another host', (_: string) => 'other.test'],
  ['another port', (_: string) => `${NAME}:444`],
  ['no port', (_: string) => NAME],
  ['the host with a user', (host: string) => `user@${host}`],
  ['the host behind another', (host: string) => `other.test,${host}`],
  ['the host below another', (host: string) => `${host}.other.test`],
  ['an address', (_: string) => '127.0.0.2'],
  ['nothing', (_: string) => ''],
])('a Host header that names %s is refused: regression', async (_, toHost) => {
  const { bench, own } = await setUp()
  expect(await bench.say(own.authority, request(toHost(own.authority)))).toStartWith('HTTP/1.1 421 ')
  expect(own.requests).toEqual([])
  expect(bench.uses).toEqual([])
})

test('a first message of TLS in more pieces than any program makes is refused at once: regression', async () => {
  const { bench, own } = await setUp()
  const tunnel = await bench.tunnel(own.authority)
  // It says that it has 65,535 bytes, of which each is a record of its own.
  const bytes = [1, 0, 0xff, 0xff, ...Array<number>(1000).fill(0)]
  tunnel.write(Buffer.from(bytes.flatMap(byte => [22, 3, 1, 0, 1, byte])))
  expect(await all(tunnel)).toContain('takes TLS alone')
  expect(own.requests).toEqual([])
})

test('a second request of a connection is checked as the first: regression', async () => {
  const { bench, own } = await setUp()
  const socket = await bench.open(own.authority)
  socket.write(`GET / HTTP/1.1\r\nHost: ${own.authority}\r\n\r\n`)
  await until(socket, '\r\n\r\nok')
  socket.write(request('other.test'))
  expect(await all(socket)).toStartWith('HTTP/1.1 421 ')
  expect(own.requests).toHaveLength(1)
})

test.each([
  ['two host headers', (host: string) => `GET / HTTP/1.1\r\nHost: ${host}\r\nHost: other.test\r\n\r\n`],
  ['no host', () => 'GET / HTTP/1.1\r\n\r\n'],
  ['an address as its target', (host: string) => request(host, `https://${host}/`)],
  ['another host as its target', (host: string) => request(host, 'https://other.test/')],
  ['an authority as its target', (host: string) => request(host, host)],
  ['CONNECT', (host: string) => `CONNECT ${host} HTTP/1.1\r\nHost: ${host}\r\n\r\n`],
  [
    'two lengths',
    (host: string) => `POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx`,
  ],
  ['two lengths in one', (host: string) => `POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 1, 1\r\n\r\nx`],
  [
    'a length and chunks',
    (host: string) =>
      `POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
  ],
  [
    'chunks that are not the last coding',
    (host: string) => `POST / HTTP/1.1\r\nHost: ${host}\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n`,
  ],
  ['a folded header', (host: string) => `GET / HTTP/1.1\r\nHost: ${host}\r\nX-A: b\r\n c\r\n\r\n`],
  ['a folded host', (host: string) => `GET / HTTP/1.1\r\nHost:\r\n ${host}\r\n\r\n`],
  ['a space before a colon', (host: string) => `GET / HTTP/1.1\r\nHost : ${host}\r\n\r\n`],
  ['a bare line feed', (host: string) => `GET / HTTP/1.1\r\nHost: ${host}\nX-A: b\r\n\r\n`],
  ['a zero byte', (host: string) => `GET / HTTP/1.1\r\nHost: ${host}\r\nX-A: \0b\r\n\r\n`],
  ['the preface of HTTP/2', () => 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
])('a request with %s is refused and reaches nobody: regression', async (_, toText) => {
  const { bench, own } = await setUp()
  expect(await bench.say(own.authority, toText(own.authority))).toMatch(/^HTTP\/1\.1 4\d\d /)
  expect(own.requests).toEqual([])
  expect(bench.uses).toEqual([])
})

test('an upgrade to another protocol than WebSocket is not passed on: regression', async () => {
  const { bench, own } = await setUp()
  const upgrade = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n'
  await bench.say(
    own.authority,
    `GET / HTTP/1.1\r\nHost: ${own.authority}\r\n${upgrade}\r\n`.replace('Upgrade, ', 'close, Upgrade, '),
  )
  expect(own.requests[0]?.headers).not.toHaveProperty('upgrade')
  expect(own.requests[0]?.headers).not.toHaveProperty('http2-settings')
})

test('what a host says unasked, or an upgrade that nobody asked for, ends the connection: regression', async () => {
  const { bench } = await setUp()
  const early = await openRawHost(socket => {
    socket.on('data', () =>
      socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad'),
    )
  })
  const upgrading = await openRawHost(socket => {
    socket.once('data', () => socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n'))
  })
  bench.bound = [bind(early.authority), bind(upgrading.authority)]
  const answer = await bench.say(early.authority, `GET / HTTP/1.1\r\nHost: ${early.authority}\r\n\r\n`)
  expect(answer).toEndWith('\r\n\r\nok')
  expect(await bench.say(upgrading.authority, request(upgrading.authority))).toStartWith('HTTP/1.1 502 ')
})

test('another name in TLS is refused: regression', async () => {
  const { bench, own } = await setUp()
  for (const servername of ['other.test', `x.${NAME}`, `${NAME}.other.test`]) {
    await expect(bench.open(own.authority, { servername })).rejects.toThrow()
  }
  expect(bench.egress.counts('env_test').lastRefusal).toContain('asks for another name')
  expect(own.requests).toEqual([])
})

test('capital letters, a last dot, and no name in TLS are the same host', async () => {
  const { bench, own } = await setUp()
  for (const [host, servername] of [
    [`API.Test.:${own.port}`, 'API.test'],
    [own.authority, ''],
  ] as const) {
    const socket = await bench.open(host, { servername })
    socket.write(request(`Api.test.:${own.port}`))
    expect(await all(socket)).toEndWith('ok')
  }
  expect(own.requests.map(({ headers }) => headers.authorization)).toEqual([`Bearer ${SECRET}`, `Bearer ${SECRET}`])
  expect(own.requests[0]?.headers.host).toBe(own.authority)
})

test('a program that speaks no TLS, or no HTTP in it, is refused: regression', async () => {
  const { bench, own } = await setUp()
  const plain = await bench.tunnel(own.authority)
  plain.write(request(own.authority))
  expect(await all(plain)).toContain('takes TLS alone')
  const garbage = await bench.tunnel(own.authority)
  garbage.write(Buffer.from('160301ffff01000000', 'hex'))
  garbage.end()
  expect(await all(garbage)).not.toContain('ok')
  await expect(bench.open(own.authority, { protocols: ['ssh'] })).rejects.toThrow()
  expect(own.requests).toEqual([])
})

test.each(['the address of the host', 'another name of its address', 'another port'])(
  'a connection to %s is a plain tunnel, without a secret: regression',
  async way => {
    const { bench, own } = await setUp({ 'alias.test': ['127.0.0.2'] })
    if (way === 'another port') bench.bound = [bind(`${NAME}:1`)]
    const hosts = new Map([
      ['the address of the host', `127.0.0.2:${own.port}`],
      ['another name of its address', `alias.test:${own.port}`],
    ])
    const tunnel = await bench.tunnel(hosts.get(way) ?? own.authority)
    const { connect } = await import('node:tls')
    const secure = connect({ socket: tunnel, servername: NAME, rejectUnauthorized: false })
    await new Promise(resolve => secure.once('secureConnect', resolve))
    secure.write(request(own.authority))
    await all(secure)
    expect(own.requests[0]?.headers['x-token']).toBe(PLACEHOLDER)
    expect(own.requests[0]?.headers.authorization).toBeUndefined()
    expect(bench.uses).toEqual([])
  },
)

test('a plain request through the proxy gets no secret: regression', async () => {
  const { bench, own } = await setUp()
  const { createServer } = await import('node:http')
  let headers: Record<string, unknown> = {}
  const server = createServer((incoming, response) => {
    headers = incoming.headers
    response.end('ok')
  })
  const { listen, say } = await import('../support.ts')
  const port = await listen(server, '127.0.0.2')
  bench.bound = [bind(`${NAME}:${port}`), ...bench.bound]
  await say(bench.proxy, `GET http://${NAME}:${port}/ HTTP/1.1\r\nHost: ${own.authority}\r\nConnection: close\r\n\r\n`)
  server.close()
  expect(headers).not.toHaveProperty('authorization')
})

test('a host whose certificate is for another name, or of no known authority, gets nothing: regression', async () => {
  const { bench } = await setUp()
  const wrong = await openHost(undefined, 'other.test')
  const target = `${NAME}:${wrong.port}`
  bench.bound = [bind(target)]
  expect(await bench.say(target, request(target))).toMatch(/^HTTP\/1\.1 502 .*no safe connection/)
  expect(wrong.requests).toEqual([])
  expect(bench.egress.counts('env_test').lastRefusal).toContain('no safe connection to it')

  const trusting = await openSecretBench({}, [])
  const own = await openHost()
  trusting.bound = [bind(own.authority)]
  expect(await trusting.say(own.authority, request(own.authority))).toMatch(/^HTTP\/1\.1 502 /)
  expect(own.requests).toEqual([])
})

test('a request of HTTP/2 for another host is refused, and others of its connection are not: regression', async () => {
  const { bench } = await setUp()
  const asked: unknown[] = []
  const host = await openHost2((stream, headers) => {
    asked.push(headers.authorization)
    stream.respond({ ':status': 200 })
    stream.end('ok')
  })
  bench.bound = [bind(host.authority)]
  const { connect } = await import('node:http2')
  const secure = await bench.open(host.authority, { protocols: ['h2'] })
  const session = connect(`https://${host.authority}`, { createConnection: () => secure })
  const status = (headers: Record<string, string>) =>
    new Promise(resolve => {
      const stream = session.request({ ':path': '/', ...headers })
      stream.on('error', () => resolve('reset'))
      stream.once('response', ({ ':status': code }) => resolve(code)).resume()
      stream.end()
    })
  expect(await status({ ':authority': 'other.test' })).toBe(421)
  expect(await status({ ':authority': NAME })).toBe(421)
  expect(await status({ host: 'other.test' })).toBe(421)
  expect(await status({ ':scheme': 'http' })).toBe(400)
  expect(await status({ ':path': 'https://other.test/' })).toBe('reset')
  expect(asked).toEqual([])
  expect(await status({})).toBe(200)
  expect(asked).toEqual([`Bearer ${SECRET}`])
  session.destroy()
})

test('a program that does not trust the authority gets nothing, and the reason is told', async () => {
  const { bench, own } = await setUp()
  const { connect } = await import('node:tls')
  const secure = connect({ socket: await bench.tunnel(own.authority), servername: NAME })
  await new Promise(resolve => secure.once('error', resolve))
  secure.destroy()
  while (bench.egress.counts('env_test').refused === 0) await Bun.sleep(5)
  expect(bench.egress.counts('env_test').lastRefusal).toContain("refused the server's certificate")
  expect(own.requests).toEqual([])
})
