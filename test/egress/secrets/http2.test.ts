import { afterEach, expect, test } from 'bun:test'
import { type ClientHttp2Session, connect, type OutgoingHttpHeaders } from 'node:http2'
import { bind, carried, closeAll, openHost2, openSecretBench, PLACEHOLDER, SECRET, type SecretBench } from './host.ts'

afterEach(closeAll)

const MASK = '*'.repeat(SECRET.length)

async function openSession(bench: SecretBench, authority: string): Promise<ClientHttp2Session> {
  const secure = await bench.open(authority, { protocols: ['h2', 'http/1.1'] })
  expect(secure.alpnProtocol).toBe('h2')
  const session = connect(`https://${authority}`, { createConnection: () => secure })
  session.on('error', () => {})
  return session
}

interface Answered {
  headers: Record<string, unknown>
  body: string
  trailers: Record<string, unknown>
  rstCode: number
}

function ask(session: ClientHttp2Session, headers: OutgoingHttpHeaders, body?: string, trailers?: OutgoingHttpHeaders) {
  const stream = session.request(headers, { endStream: body === undefined, ...(trailers && { waitForTrailers: true }) })
  if (trailers) stream.on('wantTrailers', () => stream.sendTrailers(trailers))
  const answered: Answered = { headers: {}, body: '', trailers: {}, rstCode: 0 }
  stream.on('response', all => (answered.headers = all)).on('trailers', all => (answered.trailers = all))
  stream.setEncoding('utf8').on('data', piece => (answered.body += piece))
  if (body !== undefined) stream.end(body)
  return new Promise<Answered>(resolve => {
    stream.on('error', () => {})
    stream.once('close', () => resolve({ ...answered, rstCode: stream.rstCode ?? 0 }))
  })
}

test('HTTP/2 passes with bodies, trailers both ways and a secret in each request', async () => {
  const bench = await openSecretBench()
  const host = await openHost2((stream, headers) => {
    let [body, last] = ['', '']
    stream.setEncoding('utf8').on('data', piece => (body += piece))
    stream.on('trailers', fields => (last = String(fields['x-sum'])))
    stream.on('end', () => {
      stream.respond(
        { ':status': 200, 'x-echo': String(headers.authorization), 'set-cookie': ['a=1', 'b=2'] },
        { waitForTrailers: true },
      )
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0', 'grpc-message': SECRET }))
      stream.end(`${body} ${last} ${headers.authorization === `Bearer ${SECRET}`}`)
    })
  })
  bench.bound = [bind(host.authority)]
  const session = await openSession(bench, host.authority)
  const asked = ['one', 'two', 'three'].map(body =>
    ask(session, { ':method': 'POST', ':path': `/${body}`, te: 'trailers' }, body, { 'x-sum': body.length }),
  )
  const [first, , third] = await Promise.all(asked)
  expect(first?.headers).toMatchObject({ ':status': 200, 'x-echo': `Bearer ${MASK}`, 'set-cookie': ['a=1', 'b=2'] })
  expect(first?.body).toBe('one 3 true')
  expect(first?.trailers).toMatchObject({ 'grpc-status': '0', 'grpc-message': MASK })
  expect(third?.body).toBe('three 5 true')
  expect(bench.uses.map(({ path }) => path).sort()).toEqual(['/one', '/three', '/two'])
  session.destroy()
})

test('an answer without a body, to HEAD, and an error of the host pass', async () => {
  const bench = await openSecretBench()
  const host = await openHost2((stream, { ':path': path, ':method': method }) => {
    if (path === '/reset') return void stream.close(8)
    const headers = { ':status': path === '/empty' ? 204 : 200, ...(method === 'HEAD' && { 'content-length': '1234' }) }
    stream.respond(headers, { endStream: true })
  })
  bench.bound = [bind(host.authority)]
  const session = await openSession(bench, host.authority)
  expect((await ask(session, { ':path': '/empty' })).headers[':status']).toBe(204)
  const head = await ask(session, { ':path': '/', ':method': 'HEAD' })
  expect(head.headers).toMatchObject({ ':status': 200, 'content-length': '1234' })
  const reset = await ask(session, { ':path': '/reset' })
  expect(reset.headers[':status'] === 502 || reset.rstCode !== 0).toBe(true)
  expect((await ask(session, { ':path': '/empty' })).headers[':status']).toBe(204)
  session.destroy()
})

test('a program that gives a request up ends it at the host, and its others go on', async () => {
  const ended = Promise.withResolvers<void>()
  const bench = await openSecretBench()
  const host = await openHost2((stream, { ':path': path }) => {
    stream.respond({ ':status': 200 })
    if (path === '/') return void stream.end('ok')
    stream.write('begun')
    stream.once('close', ended.resolve)
  })
  bench.bound = [bind(host.authority)]
  const session = await openSession(bench, host.authority)
  const stream = session.request({ ':path': '/events' })
  stream.on('error', () => {})
  await new Promise(resolve => stream.once('data', resolve))
  stream.close(8)
  await ended.promise
  expect((await ask(session, { ':path': '/' })).body).toBe('ok')
  session.destroy()
})

test('a form over HTTP/2 has secrets in place of their placeholders, and its right length', async () => {
  const bench = await openSecretBench()
  const host = await openHost2((stream, headers) => {
    let body = ''
    stream.setEncoding('utf8').on('data', piece => (body += piece))
    stream.on('end', () => {
      stream.respond({ ':status': 200 })
      stream.end(`${body === `t=${encodeURIComponent(SECRET)}`} ${Number(headers['content-length']) === body.length}`)
    })
  })
  bench.bound = [bind(host.authority, { as: { env: 'TOKEN' }, placeholder: PLACEHOLDER })]
  const session = await openSession(bench, host.authority)
  const headers = { ':method': 'POST', ':path': '/', 'content-type': 'application/x-www-form-urlencoded' }
  const body = `t=${PLACEHOLDER}`
  expect((await ask(session, { ...headers, 'content-length': body.length }, body)).body).toBe('true true')
  session.destroy()
})

test.each([
  ['a socket', undefined],
  ['a stream', carried],
])('a slow program on %s is waited for over HTTP/2 too, whatever it says it would take', async (_, toStream) => {
  let sent = 0
  const bench = await openSecretBench({}, undefined, toStream)
  const host = await openHost2(stream => {
    stream.respond({ ':status': 200 })
    const piece = Buffer.alloc(65_536)
    const fill = () => {
      while (sent < 200_000_000 && !stream.destroyed) {
        sent += piece.byteLength
        if (!stream.write(piece)) return void stream.once('drain', fill)
      }
    }
    fill()
  })
  bench.bound = [bind(host.authority)]
  const secure = await bench.open(host.authority, { protocols: ['h2'] })
  // Written by hand: a client of node:http2 reads ahead by itself.
  const frame = (type: number, flags: number, stream: number, content: Buffer) => {
    const head = Buffer.alloc(9)
    head.writeUIntBE(content.byteLength, 0, 3)
    head.writeUIntBE(type * 256 + flags, 3, 2)
    head.writeUInt32BE(stream, 5)
    return Buffer.concat([head, content])
  }
  const name = Buffer.from(host.authority)
  secure.pause()
  secure.write(
    Buffer.concat([
      Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
      frame(4, 0, 0, Buffer.from('00047fffffff', 'hex')),
      frame(8, 0, 0, Buffer.from('7fff0000', 'hex')),
      frame(1, 5, 1, Buffer.concat([Buffer.from([0x82, 0x87, 0x84, 0x01, name.byteLength]), name])),
    ]),
  )
  while (sent === 0) await Bun.sleep(10)
  for (let before = -1; before !== sent; await Bun.sleep(100)) before = sent
  expect(sent).toBeLessThan(60_000_000)
  secure.destroy()
})

test('a program that speaks HTTP/2 alone gets the reason where the host has no safe connection', async () => {
  const bench = await openSecretBench({}, [])
  const host = await openHost2(stream => stream.close())
  bench.bound = [bind(host.authority)]
  const secure = await bench.open(host.authority, { protocols: ['h2'] })
  const session = connect(`https://${host.authority}`, { createConnection: () => secure })
  const { headers, body } = await ask(session, { ':path': '/' })
  expect(headers[':status']).toBe(502)
  expect(body).toContain('no safe connection to it')
  session.destroy()
})
