import { afterEach, expect, test } from 'bun:test'
import { createServer, type Socket } from 'node:net'
import { Duplex } from 'node:stream'
import { createEgress } from '../../src/egress/egress.ts'
import { serveProxy } from '../../src/egress/proxy.ts'
import { all, dialed, listen, loopback, openBench, openPolicy, SANDBOX, say, until } from './support.ts'

const open: { close(): void }[] = []
afterEach(() => {
  for (const each of open.splice(0)) each.close()
})

async function bench(...input: Parameters<typeof openBench>) {
  const made = await openBench(...input)
  open.push(made)
  return made
}

const rss = () => {
  Bun.gc(true)
  return process.memoryUsage.rss()
}
const MIB = 1024 * 1024

test('a head without end is refused at its bound: regression', async () => {
  const { port } = await bench(openPolicy)
  const socket = await dialed(port)
  socket.on('error', () => {})
  socket.write('GET http://a.example/ HTTP/1.1\r\n')
  const answered = all(socket)
  const line = `X-A: ${'a'.repeat(4000)}\r\n`
  for (let count = 0; count < 100 && !socket.destroyed; count++) socket.write(line)
  expect(await answered).toStartWith('HTTP/1.1 431 ')
})

test.each([
  ['a value of spaces that ends badly', `x:${' '.repeat(60_000)}\x01`],
  ['a connection with spaces inside', `connection: a${' '.repeat(60_000)}b`],
  ['a value of spaces and tabs', `x:${' \t'.repeat(30_000)}\x7f`],
])('%s does not hold the server up: regression', async (_, line) => {
  const { port } = await bench(openPolicy)
  const startedAt = performance.now()
  const answer = await say(port, `GET / HTTP/1.1\r\nHost: x\r\n${line}\r\n\r\n`, { end: true })
  expect(answer).toMatch(/^HTTP\/1\.1 40[04] /)
  // It took hours.
  expect(performance.now() - startedAt).toBeLessThan(30_000)
})

test('a head of more headers than anyone sends is refused: regression', async () => {
  const { port } = await bench(openPolicy)
  const lines = Array.from({ length: 5000 }, (_, index) => `a${index.toString(36)}:b\r\n`).join('')
  const answer = await say(port, `GET / HTTP/1.1\r\nHost: x\r\n${lines}\r\n`, { end: true })
  expect(answer).toStartWith('HTTP/1.1 431 ')
})

test('a head that takes too long is refused, a connection that says nothing is closed: regression', async () => {
  const parts = {
    dial: () => Promise.reject(new Error('not asked for')),
    local: async () => new Response('x'),
    headMs: 50,
  }
  const server = createServer({ allowHalfOpen: true }, socket => void serveProxy(socket, parts))
  open.push({ close: () => server.close() })
  const port = await listen(server, '127.0.0.1')
  const slow = await dialed(port)
  slow.write('GET / HTTP/1.1\r\nX-A')
  expect(await all(slow)).toStartWith('HTTP/1.1 408 ')
  expect(await say(port, '')).toBe('')
})

test('a thousand connections cost bounded sockets and memory, and leave nothing: regression', async () => {
  let upstreams = 0
  const sockets: Socket[] = []
  const server = createServer({ allowHalfOpen: true }, socket => {
    upstreams++
    sockets.push(socket)
    socket.on('error', () => {}).on('close', () => upstreams--)
    socket.on('end', () => socket.destroy())
  })
  open.push({ close: () => server.close() })
  const target = await listen(server, '127.0.0.2')
  const made = await bench(loopback)
  const before = rss()
  const clients = await Promise.all(Array.from({ length: 1000 }, () => dialed(made.port)))
  const first = clients.map(client => {
    client.on('error', () => {})
    client.write(`CONNECT 127.0.0.2:${target} HTTP/1.1\r\nHost: x\r\n\r\n${'x'.repeat(20_000)}`)
    return until(client, '\r\n\r\n').catch(() => 'closed')
  })
  const answers = await Promise.all(first)
  expect(answers.filter(answer => answer.startsWith('HTTP/1.1 200 '))).toHaveLength(256)
  expect(answers.filter(answer => answer.startsWith('HTTP/1.1 503 ')).length).toBeGreaterThan(0)
  expect(upstreams).toBe(256)
  expect(rss() - before).toBeLessThan(300 * MIB)
  made.egress.forget(SANDBOX)
  await Promise.all(
    sockets.map(socket => socket.destroyed || new Promise(resolve => socket.once('close', resolve).resume())),
  )
  expect(upstreams).toBe(0)
  for (const client of clients) client.destroy()
})

test('a peer that never reads its answers holds no more than one: regression', async () => {
  let answered = 0
  const made = await bench(openPolicy, {}, async () => {
    answered++
    return new Response(Buffer.alloc(MIB))
  })
  const socket = new Duplex({ highWaterMark: 65_536, read() {}, write: () => {} })
  made.egress.serve(SANDBOX, socket)
  for (let count = 0; count < 1000; count++) socket.push('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  const other = await dialed(made.port)
  other.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  await until(other, '\r\n\r\n')
  expect(answered).toBe(2)
  socket.destroy()
})

test('a half-open peer whose server is gone is closed: regression', async () => {
  const server = createServer({ allowHalfOpen: true }, socket => void socket.end('bye'))
  open.push({ close: () => server.close() })
  const target = await listen(server, '127.0.0.2')
  const made = await bench(loopback)
  const answer = await say(made.port, `CONNECT 127.0.0.2:${target} HTTP/1.1\r\nHost: x\r\n\r\n`)
  expect(answer).toEndWith('bye')
})

test('an answer that is cut short is not made whole: regression', async () => {
  const server = createServer(socket => {
    socket.on('error', () => {})
    socket.once(
      'data',
      () => void socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab', () => socket.destroy()),
    )
  })
  open.push({ close: () => server.close() })
  const target = await listen(server, '127.0.0.2')
  const made = await bench(loopback)
  const answer = await say(made.port, `GET http://127.0.0.2:${target}/ HTTP/1.1\r\nHost: x\r\n\r\n`)
  expect(answer).not.toContain('0\r\n\r\n')
  expect(answer.match(/HTTP\/1\.1/g)).toHaveLength(1)
})

test('slow names hold a few lookups, whatever a sandbox asks: regression', async () => {
  const lookups = Promise.withResolvers<string[]>()
  let asked = 0
  const egress = createEgress({
    policyOf: () => openPolicy,
    log: () => {},
    resolve: () => {
      asked++
      return lookups.promise
    },
  })
  const answers = Array.from({ length: 50 }, (_, index) =>
    egress.fetch(SANDBOX, `http://n${index}.example/`).catch(each => each),
  )
  await new Promise<void>(resolve => setImmediate(resolve))
  expect(asked).toBe(8)
  lookups.resolve(['10.0.0.1'])
  for (const answer of await Promise.all(answers)) expect(answer).toMatchObject({ code: 'forbidden' })
  expect(asked).toBe(50)
})

test('connections that one sandbox makes too fast wait for their turn, and those of another do not, regression', async () => {
  const upstream = createServer(socket => void socket.end('reached'))
  const port = await listen(upstream, '127.0.0.2')
  const egress = createEgress({
    policyOf: () => loopback,
    log() {},
    paces: { connection: { perSecond: 0.001, burst: 2, maxWaiting: 1 } },
  })
  const gates = ['env_one', 'env_other'].map(id =>
    createServer({ allowHalfOpen: true }, socket => egress.serveDirect(id, socket, { address: '127.0.0.2', port })),
  )
  for (const each of [upstream, egress, ...gates]) open.push({ close: () => void each.close() })
  const [one = 0, other = 0] = await Promise.all(gates.map(gate => listen(gate, '127.0.0.1')))
  const answerOf = (socket: Socket) => all(socket).catch(() => 'reset')
  const connect = async (gate: number) => await answerOf(await dialed(gate))
  expect([await connect(one), await connect(one)]).toEqual(['reached', 'reached'])
  const waiting = await dialed(one)
  const answer = answerOf(waiting)
  // There is no place to wait for another one.
  expect(await connect(one)).toBe('reset')
  expect(await connect(other)).toBe('reached')
  expect(egress.decisions('env_one')).toMatchObject([
    { isAllowed: true, reason: 'too many connections at once' },
    { isAllowed: true, count: 2 },
  ])
  egress.forget('env_one')
  expect(await answer).not.toBe('reached')
})

test('requests on a kept connection take no turns of connections, and a flood of them is bounded too, regression', async () => {
  const upstream = createServer(socket => void socket.end('HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nreached'))
  const port = await listen(upstream, '127.0.0.2')
  const egress = createEgress({
    policyOf: () => loopback,
    log() {},
    paces: {
      connection: { perSecond: 0.001, burst: 2, maxWaiting: 0 },
      request: { perSecond: 0.001, burst: 2, maxWaiting: 0 },
    },
  })
  const gate = createServer({ allowHalfOpen: true }, socket => egress.serve('env_one', socket))
  for (const each of [upstream, egress, gate]) open.push({ close: () => void each.close() })
  const to = await listen(gate, '127.0.0.1')
  const request = `GET http://127.0.0.2:${port}/ HTTP/1.1\r\nHost: 127.0.0.2\r\n\r\n`
  const statusesOf = async (requests: number) => {
    const socket = await dialed(to)
    socket.end(request.repeat(requests))
    return Array.from(`${await all(socket)}`.matchAll(/HTTP\/1\.1 (\d+)/g), ([, status]) => status)
  }
  expect(await statusesOf(1)).toEqual(['200'])
  expect(await statusesOf(4)).toEqual(['200', '200', '200', '503'])
  expect(await statusesOf(1)).toEqual(['503'])
})
