import { afterEach, describe, expect, test } from 'bun:test'
import { createServer, type Socket } from 'node:net'
import { parseRules } from '../../src/egress/rules.ts'
import { all, type Bench, dialed, listen, loopback, openBench, openPolicy, SANDBOX, say, until } from './support.ts'

const open: { close(): void }[] = []
afterEach(() => {
  for (const each of open.splice(0)) each.close()
})

async function bench(...input: Parameters<typeof openBench>): Promise<Bench> {
  const made = await openBench(...input)
  open.push(made)
  return made
}

/** A server on 127.0.0.2 that answers each connection so. */
async function upstream(onConnection: (socket: Socket) => void): Promise<number> {
  const sockets: Socket[] = []
  const server = createServer({ allowHalfOpen: true }, socket => {
    sockets.push(socket)
    socket.on('error', () => {})
    onConnection(socket)
  })
  open.push({
    close: () => {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  })
  return await listen(server, '127.0.0.2')
}

const echo = (socket: Socket) => void socket.pipe(socket)

describe('a tunnel', () => {
  test('carries bytes both ways and ends each direction by itself', async () => {
    const port = await upstream(echo)
    const { port: proxy } = await bench(loopback)
    const socket = await dialed(proxy)
    socket.write(`CONNECT 127.0.0.2:${port} HTTP/1.1\r\nHost: 127.0.0.2:${port}\r\n\r\nearly `)
    expect(await until(socket, 'early ')).toBe('HTTP/1.1 200 Connection established\r\n\r\nearly ')
    socket.end('late')
    expect(await all(socket)).toBe('late')
  })

  test('waits for a slow reader instead of buffering', async () => {
    let sent = 0
    const port = await upstream(socket => {
      const piece = Buffer.alloc(65_536)
      const fill = () => {
        while (sent < 200_000_000) {
          sent += piece.byteLength
          if (!socket.write(piece)) return void socket.once('drain', fill)
        }
      }
      fill()
    })
    const { port: proxy } = await bench(loopback)
    const socket = await dialed(proxy)
    socket.write(`CONNECT 127.0.0.2:${port} HTTP/1.1\r\nHost: x\r\n\r\n`)
    await until(socket, '\r\n\r\n')
    socket.pause()
    let before = -1
    while (before !== sent) {
      before = sent
      await Bun.sleep(100)
    }
    expect(sent).toBeLessThan(30_000_000)
    socket.destroy()
  })

  test('is cut when the rules no longer allow it, and others are not: regression', async () => {
    const port = await upstream(echo)
    const made = await bench(loopback)
    const opened = async (host: string) => {
      const socket = await dialed(made.port)
      socket.write(`CONNECT ${host}:${port} HTTP/1.1\r\nHost: x\r\n\r\n`)
      await until(socket, '\r\n\r\n')
      return socket
    }
    const socket = await opened('127.0.0.2')
    made.egress.refresh(SANDBOX)
    socket.write('still here')
    await until(socket, 'still here')
    made.policy = { ...loopback, layers: [{ allow: parseRules(['127.0.0.3']), deny: [] }] }
    made.egress.refresh(SANDBOX)
    await all(socket)
    expect(await say(made.port, `CONNECT 127.0.0.2:${port} HTTP/1.1\r\nHost: x\r\n\r\n`)).toStartWith('HTTP/1.1 403 ')
    expect(made.egress.counts(SANDBOX)).toMatchObject({ allowed: 1, refused: 1 })
  })
})

describe('a refusal', () => {
  const rows: [string, string, string][] = [
    ['loopback', '127.0.0.1:22', '403'],
    ['loopback of version 6', '[::1]:22', '403'],
    ['private', '10.0.0.1:80', '403'],
    ['metadata', '169.254.169.254:80', '403'],
    ['metadata of version 6', '[fd00:ec2::254]:80', '403'],
    ['mapped', '[::ffff:127.0.0.1]:80', '403'],
    ['NAT64', '[64:ff9b::7f00:1]:80', '403'],
    ['decimal', '2130706433:80', '400'],
    ['octal', '0177.0.0.1:80', '400'],
    ['hexadecimal', '0x7f000001:80', '400'],
    ['short', '127.1:80', '400'],
    ['a zone', '[fe80::1%lo]:80', '400'],
    ['a name of loopback', 'inside.example:80', '403'],
    ['a name of a private and a metadata address', 'both.example:80', '403'],
    ['a name of a mapped address', 'mapped.example:80', '403'],
    ['mail', 'mail.example:25', '403'],
    ['a name that nobody knows', 'none.example:80', '502'],
    ['port 0', 'a.example:0', '400'],
    ['no port', 'a.example', '400'],
  ]
  test.each(rows)('of %s: regression', async (_, target, status) => {
    const made = await bench(openPolicy, {
      'inside.example': ['127.0.0.1'],
      'both.example': ['10.0.0.1', '169.254.169.254', 'fe80::1%eth0'],
      'mapped.example': ['::ffff:127.0.0.1'],
      'mail.example': ['8.8.8.8'],
    })
    expect(await say(made.port, `CONNECT ${target} HTTP/1.1\r\nHost: x\r\n\r\n`)).toStartWith(`HTTP/1.1 ${status} `)
    if (status !== '400') {
      expect(await say(made.port, `GET http://${target}/p HTTP/1.1\r\nHost: x\r\n\r\n`)).toStartWith(
        `HTTP/1.1 ${status} `,
      )
    }
  })

  test('says why, in the status line and the body, and is logged without the path: regression', async () => {
    const made = await bench(openPolicy)
    const answer = await say(made.port, 'GET http://10.0.0.1:81/secret?key=1 HTTP/1.1\r\nHost: x\r\n\r\n')
    expect(answer).toStartWith('HTTP/1.1 403 10.0.0.1:81: its address is not public\r\n')
    expect(answer).toEndWith('\r\n\r\nthreadbox: 10.0.0.1:81: its address is not public\n')
    expect(made.lines).toEqual([`network ${SANDBOX}: refused 10.0.0.1 port 81: its address is not public`])
    expect(made.egress.counts(SANDBOX)).toEqual({
      allowed: 0,
      refused: 1,
      lastRefusal: '10.0.0.1 port 81: its address is not public',
    })
  })

  test('of a name that is on no list asks no resolver: regression', async () => {
    const made = await bench({ ...openPolicy, layers: [{ allow: parseRules(['a.example']), deny: [] }] })
    await say(made.port, 'CONNECT c2VjcmV0.evil.example:443 HTTP/1.1\r\nHost: x\r\n\r\n')
    expect(made.asked).toEqual([])
  })

  test('without end does not fill the log: regression', async () => {
    const made = await bench(openPolicy)
    for (let round = 0; round < 100; round++) await say(made.port, 'CONNECT 10.0.0.1:1 HTTP/1.1\r\nHost: x\r\n\r\n')
    expect([made.lines.length, made.egress.counts(SANDBOX).refused]).toEqual([60, 100])
  })
})

test('the dialled address is the checked one when a name changes: regression', async () => {
  const seen: string[] = []
  const port = await upstream(socket => {
    seen.push('127.0.0.2')
    socket.end()
  })
  let asked = 0
  const only = { ...loopback, layers: [{ allow: parseRules(['127.0.0.2']), deny: [] }] }
  const made = await bench(only, { 'rebind.example': () => (asked++ === 0 ? ['127.0.0.2'] : ['127.0.0.1']) })
  const connect = `CONNECT rebind.example:${port} HTTP/1.1\r\nHost: x\r\n\r\n`
  expect(await say(made.port, connect, { end: true })).toStartWith('HTTP/1.1 200 ')
  expect([seen, asked]).toEqual([['127.0.0.2'], 1])
  expect(await say(made.port, connect)).toStartWith('HTTP/1.1 403 ')
})

test('allowed addresses are tried in turn, the others never', async () => {
  const port = await upstream(socket => void socket.end('hello'))
  const only = { ...loopback, layers: [{ allow: parseRules(['127.0.0.2/31']), deny: [] }] }
  const made = await bench(only, {
    'many.example': ['10.0.0.1', '127.0.0.3', '127.0.0.2'],
    'closed.example': ['127.0.0.3'],
  })
  const ask = (name: string) => say(made.port, `CONNECT ${name}:${port} HTTP/1.1\r\nHost: x\r\n\r\n`, { end: true })
  expect(await ask('many.example')).toEndWith('hello')
  expect(await ask('closed.example')).toStartWith('HTTP/1.1 502 ')
})

describe('plain HTTP', () => {
  test('goes on to the server by its path, without what is between neighbours', async () => {
    const heads: string[] = []
    const port = await upstream(async socket => {
      heads.push(await until(socket, '\r\n\r\n'))
      socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Own: 1\r\nKeep-Alive: 9\r\n\r\nhi')
    })
    const made = await bench(loopback)
    const socket = await dialed(made.port)
    const url = `http://127.0.0.2:${port}`
    socket.write(
      `GET ${url}/a?b HTTP/1.1\r\nHost: other\r\nX-A: 1\r\nProxy-Authorization: s\r\nConnection: x-b\r\nX-B: 2\r\n\r\n`,
    )
    expect(await until(socket, '\r\n\r\nhi')).toContain('x-own: 1')
    socket.write(`GET ${url} HTTP/1.1\r\nHost: other\r\nConnection: close\r\n\r\n`)
    expect(await all(socket)).toEndWith('connection: close\r\n\r\nhi')
    expect(heads).toEqual([
      `GET /a?b HTTP/1.1\r\nhost: 127.0.0.2:${port}\r\nx-a: 1\r\nconnection: close\r\n\r\n`,
      `GET / HTTP/1.1\r\nhost: 127.0.0.2:${port}\r\nconnection: close\r\n\r\n`,
    ])
  })

  test('carries chunked bodies both ways', async () => {
    const server = Bun.serve({
      hostname: '127.0.0.2',
      port: 0,
      fetch: async request => new Response(new Blob([await request.bytes()]).stream()),
    })
    open.push({ close: () => void server.stop(true) })
    const made = await bench(loopback)
    const body = crypto.getRandomValues(new Uint8Array(3_000_000))
    const response = await fetch(`http://127.0.0.2:${server.port}/x`, {
      method: 'POST',
      body: new Blob([body]).stream(),
      proxy: `http://127.0.0.1:${made.port}`,
    })
    expect(Buffer.from(await response.bytes()).equals(body)).toBe(true)
  })

  const smuggled: [string, string][] = [
    ['two lengths', 'Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc'],
    ['a list of lengths', 'Content-Length: 3, 3\r\n\r\nabc'],
    ['a length with a sign', 'Content-Length: +3\r\n\r\nabc'],
    ['length and chunks', 'Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['an unknown encoding', 'Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n'],
    ['chunked twice', 'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['an encoding with a tab', 'Transfer-Encoding:\tchunked \x0b\r\n\r\n0\r\n\r\n'],
    ['a space before the colon', 'Content-Length : 3\r\n\r\nabc'],
    ['a folded line', 'X-A: 1\r\n Content-Length: 3\r\n\r\nabc'],
    ['a bare line feed', 'X-A: 1\nContent-Length: 3\r\n\r\nabc'],
    ['a NUL', 'X-A: 1\0\r\n\r\n'],
    ['two hosts', 'Host: y\r\n\r\n'],
    ['a bad chunk size', 'Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n'],
    ['a chunk longer than it says', 'Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n0\r\n\r\n'],
    ['a huge chunk size', 'Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n\r\n'],
  ]
  test.each(smuggled)('with %s is refused: regression', async (_, rest) => {
    const port = await upstream(() => {})
    const made = await bench(loopback)
    const answer = await say(made.port, `POST http://127.0.0.2:${port}/ HTTP/1.1\r\nHost: x\r\n${rest}`)
    expect(answer).toStartWith('HTTP/1.1 400 ')
    expect(answer.match(/HTTP\/1\.1/g)).toHaveLength(1)
  })

  test('of a server that answers in two ways is refused: regression', async () => {
    for (const head of ['Content-Length: 1\r\nTransfer-Encoding: chunked', 'Content-Length: 1\r\nContent-Length: 2']) {
      const port = await upstream(socket => void socket.end(`HTTP/1.1 200 OK\r\n${head}\r\n\r\n1\r\na\r\n0\r\n\r\n`))
      const made = await bench(loopback)
      expect(await say(made.port, `GET http://127.0.0.2:${port}/ HTTP/1.1\r\nHost: x\r\n\r\n`)).toStartWith(
        'HTTP/1.1 502 ',
      )
    }
  })
})

describe('the proxy itself', () => {
  test('answers its own address by what the server gives it, also with no network', async () => {
    const made = await bench({ ...openPolicy, mode: 'none' }, {}, async (request, environmentId) => {
      const { pathname, search } = new URL(request.url)
      return new Response(`${request.method} ${pathname}${search} ${environmentId} ${await request.text()}`, {
        status: 201,
      })
    })
    const response = await fetch(`http://127.0.0.1:${made.port}/v1/messages?a=1`, { method: 'POST', body: 'hi' })
    expect([response.status, await response.text()]).toEqual([201, `POST /v1/messages?a=1 ${SANDBOX} hi`])
  })

  test('has nothing there without it', async () => {
    const made = await bench(openPolicy)
    expect((await fetch(`http://127.0.0.1:${made.port}/`)).status).toBe(404)
  })

  test('tells what the server gives as it comes, and tells the server when the program goes', async () => {
    const gone = Promise.withResolvers<string>()
    const made = await bench(openPolicy, {}, async request => {
      request.signal.addEventListener('abort', () => gone.resolve('gone'))
      return new Response(
        new ReadableStream<Uint8Array>({
          start: controller => controller.enqueue(Buffer.from('data: 1\n\n')),
          cancel: () => {},
        }),
      )
    })
    const socket = await dialed(made.port)
    socket.write('GET /stream HTTP/1.1\r\nHost: x\r\n\r\n')
    expect(await until(socket, 'data: 1')).toContain('transfer-encoding: chunked')
    socket.destroy()
    expect(await gone.promise).toBe('gone')
  })
})
