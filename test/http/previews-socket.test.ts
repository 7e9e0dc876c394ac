import { beforeAll, describe, expect, test } from 'bun:test'
import { createKey } from '../../src/core/access/keys.ts'
import { revokeKey } from '../../src/db/keys.ts'
import { useApp } from '../support/app.ts'
import { startInside } from '../support/preview-server.ts'
import { until } from '../support/until.ts'

const app = useApp()
const [REAL, RAW] = [8400, 8401]
let sandbox: string

/** Bun's own server; the guest is this program. It says how each socket of a caller ended. */
const realServer = `
const ends = []
Bun.serve({
  hostname: '127.0.0.1', port: Number(process.argv[2]),
  fetch(request, server) {
    const { pathname } = new URL(request.url)
    if (pathname === '/ends') return Response.json(ends)
    if (pathname === '/refuse') return new Response('not today', { status: 403, headers: { 'x-own': '1' } })
    if (pathname === '/head' && request.headers.get('upgrade')) { ends.push(Object.fromEntries(request.headers)) }
    const protocol = request.headers.get('sec-websocket-protocol')?.split(', ').at(-1)
    if (server.upgrade(request, { data: pathname, headers: protocol ? { 'sec-websocket-protocol': protocol } : {} })) return
    return new Response('plain')
  },
  websocket: {
    maxPayloadLength: 64 << 20, idleTimeout: 0, backpressureLimit: 1 << 30,
    open(ws) {
      if (ws.data === '/close') ws.close(4321, 'enough')
      if (ws.data === '/large') ws.send(new Uint8Array(17 << 20))
      if (ws.data === '/drop') ws.terminate()
      if (ws.data === '/flood') {
        let sent = 0
        const more = () => {
          while (sent < 3000 && ws.getBufferedAmount() < 1 << 20) { ws.send(new Uint8Array(1 << 16)); sent++ }
          require('fs').writeFileSync('/tmp/ws-sent', String(sent))
          if (sent < 3000) setTimeout(more, 1)
        }
        more()
      }
    },
    message(ws, data) { ws.data === '/count' ? ws.send(String(data.length)) : ws.send(data) },
    ping() {},
    close(ws, code, reason) { ends.push([ws.data, code, reason]) },
  },
})
`

/** Answers an upgrade with the bytes of the path, after what makes it one. */
const rawServer = `
import base64, hashlib, socket, sys, threading, urllib.parse
def serve(s):
  head = b''
  while b'\\r\\n\\r\\n' not in head: head += s.recv(65536)
  text = head.decode('latin1'); path = text.split(' ')[1]
  fields = dict((n.lower(), v.strip()) for n, _, v in (l.partition(':') for l in text.split('\\r\\n')[1:]))
  kind, _, query = path[1:].partition('?')
  accept = base64.b64encode(hashlib.sha1((fields['sec-websocket-key'] + '258EAFA5-E914-47DA-95CA-C5AB0DC85B11').encode()).digest()).decode()
  if kind == 'bad-accept': accept = 'AAAA'
  extra = {'extension': 'sec-websocket-extensions: permessage-deflate\\r\\n', 'protocol': 'sec-websocket-protocol: other\\r\\n'}.get(kind, '')
  if kind == 'silent': open('/tmp/ws-silent-begun', 'w').write('x'); s.recv(1); open('/tmp/ws-silent-ended', 'w').write('x'); return
  s.sendall(f'HTTP/1.1 101 Switching Protocols\\r\\nupgrade: websocket\\r\\nconnection: upgrade\\r\\nsec-websocket-accept: {accept}\\r\\n{extra}\\r\\n'.encode() + base64.b64decode(urllib.parse.unquote(query)))
  if kind == 'deaf': threading.Event().wait()
  got = b''
  while True:
    piece = s.recv(65536)
    if not piece: break
    got += piece
    open('/tmp/ws-got-' + kind, 'wb').write(got)
  s.close()
listener = socket.socket(); listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(('127.0.0.1', int(sys.argv[1]))); listener.listen(100)
while True: threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
`

beforeAll(async () => {
  sandbox = await app.sandbox()
  await startInside(app, sandbox, REAL, 'real.js', realServer, 'BUN_BE_BUN=1 /dev/.threadbox/threadbox run real.js')
  await startInside(app, sandbox, RAW, 'raw.py', rawServer, 'python3 raw.py')
})

const pathOf = (port: number, path: string) => `/v1/sandboxes/${sandbox}/ports/${port}${path}`

interface Ending {
  code: number
  reason: string
}

/** A WebSocket as a program of the caller opens it. */
class Client {
  readonly messages: (string | Buffer)[] = []
  readonly socket: WebSocket
  readonly opened: Promise<void>
  readonly ended: Promise<Ending>

  constructor(url: string, protocols: string[] = [], headers: Record<string, string> = {}) {
    this.socket = new WebSocket(url.replace('http', 'ws'), { protocols, headers } as unknown as string[])
    this.socket.binaryType = 'nodebuffer'
    this.socket.onmessage = ({ data }) => void this.messages.push(data)
    this.opened = new Promise((resolve, reject) => {
      this.socket.onopen = () => resolve()
      this.socket.onerror = () => reject(new Error('it does not open'))
    })
    this.opened.catch(() => {})
    this.ended = new Promise(resolve => {
      this.socket.onclose = ({ code, reason }) => resolve({ code, reason })
    })
  }

  async next(): Promise<string | Buffer> {
    await until(() => this.messages.length > 0)
    return this.messages.shift() as string | Buffer
  }
}

const connect = (port: number, path: string, protocols?: string[]) =>
  new Client(app.url + pathOf(port, path), protocols, { authorization: `Bearer ${app.key}` })
const opened = async (port: number, path: string, protocols?: string[]) => {
  const client = connect(port, path, protocols)
  await client.opened
  return client
}
const exists = async (path: string) =>
  (await app.ask('GET', `/v1/sandboxes/${sandbox}/files/exists?path=${path}`)).body === true
const ends = async () => (await app.ask('GET', pathOf(REAL, '/ends'))).body as unknown[]

test('a WebSocket that came by a link ends soon after it, though nobody speaks: regression', async () => {
  const { key, row } = app.beside(db => createKey(db, { team: 'default', name: 'lost' }))
  const { url } = (await app.ask('POST', pathOf(REAL, '/link'), {}, { key })).body
  const client = new Client(url)
  await client.opened
  client.socket.send('hello')
  expect(await client.next()).toBe('hello')
  app.beside(db => revokeKey(db, row.id))
  expect(await client.ended).toEqual({ code: 1008, reason: 'The key, token or link has ended.' })
})

describe('a WebSocket', () => {
  test('carries text and bytes of any size both ways, in order', async () => {
    const client = await opened(REAL, '/')
    const sizes = [0, 1, 125, 126, 65_535, 65_536, 1_000_000, 15 << 20]
    for (const size of sizes) {
      const bytes = Buffer.alloc(size, 'äx')
      client.socket.send(bytes)
      expect(Buffer.compare((await client.next()) as Buffer, bytes)).toBe(0)
      client.socket.send('ä'.repeat(size / 2))
      expect((await client.next()) === 'ä'.repeat(size / 2)).toBe(true)
    }
    for (let index = 0; index < 1000; index++) client.socket.send(`${index}`)
    await until(() => client.messages.length === 1000)
    expect(client.messages).toEqual(Array.from({ length: 1000 }, (_, index) => `${index}`))
    client.socket.close(4000, 'done')
    expect(await client.ended).toEqual({ code: 4000, reason: 'done' })
    await until(async () => JSON.stringify(await ends()).includes('["/",4000,"done"]'))
  })

  test('opens by a signed link', async () => {
    const { url } = (await app.ask('POST', pathOf(REAL, '/link'))).body
    const client = new Client(`${url}a?b=c`)
    await client.opened
    client.socket.send('hello')
    expect(await client.next()).toBe('hello')
    client.socket.close()
    const stranger = new Client(`${url.slice(0, -2)}x/`)
    await expect(stranger.opened).rejects.toThrow()
  })

  test('is asked for as the caller asked, without what is not the server’s to know', async () => {
    const client = new Client(app.url + pathOf(REAL, '/head'), ['one', 'two'], {
      authorization: `Bearer ${app.key}`,
      cookie: 'session=other; tbc_own=1',
      origin: 'null',
    })
    await client.opened
    expect(client.socket.protocol).toBe('two')
    client.socket.close()
    const seen = (await ends()).find(each => !Array.isArray(each)) as Record<string, string>
    expect(seen).toMatchObject({
      host: `localhost:${REAL}`,
      origin: `http://localhost:${REAL}`,
      cookie: 'own=1',
      'sec-websocket-protocol': 'one, two',
      'x-forwarded-prefix': pathOf(REAL, ''),
    })
    expect(JSON.stringify(seen)).not.toMatch(/authorization|session|extensions/)
  })

  test.each([[['app']], [[]]])(
    'of a browser with a token, and %p for the server, does not show it the token: regression',
    async own => {
      const { token } = (await app.ask('POST', '/v1/tokens')).body
      const before = (await ends()).length
      const client = new Client(app.url + pathOf(REAL, '/head'), ['threadbox', `bearer.${token}`, ...own])
      await client.opened
      expect(client.socket.protocol).toBe(own[0] ?? 'threadbox')
      client.socket.close()
      const [seen] = (await ends()).slice(before) as Record<string, string>[]
      expect(seen?.['sec-websocket-protocol']).toBe(own[0])
      expect(JSON.stringify(seen)).not.toContain(token)
    },
  )

  test('that the server closes has its code and reason', async () => {
    expect(await connect(REAL, '/close').ended).toEqual({ code: 4321, reason: 'enough' })
  })

  test('that the server drops is said to be broken', async () => {
    expect((await connect(REAL, '/drop').ended).code).toBe(1011)
  })

  test('that the caller drops ends at the server', async () => {
    const client = await opened(REAL, '/dropped')
    ;(client.socket as unknown as { terminate(): void }).terminate()
    await until(async () => JSON.stringify(await ends()).includes('["/dropped",1001,""]'))
  })

  test('that the server refuses has its answer', async () => {
    const response = await app.request('GET', pathOf(REAL, '/refuse'), {
      headers: { upgrade: 'websocket', connection: 'upgrade' },
    })
    expect([response.status, response.headers.get('x-own'), await response.text()]).toEqual([403, '1', 'not today'])
  })

  test('ends with its sandbox', async () => {
    const other = await app.sandbox()
    await startInside(app, other, REAL, 'real.js', realServer, 'BUN_BE_BUN=1 /dev/.threadbox/threadbox run real.js')
    const client = new Client(`${app.url}/v1/sandboxes/${other}/ports/${REAL}/`, [], {
      authorization: `Bearer ${app.key}`,
    })
    await client.opened
    expect((await app.ask('DELETE', `/v1/sandboxes/${other}`)).status).toBe(204)
    expect((await client.ended).code).toBe(1011)
  })

  test('whose caller does not read makes the server wait, and loses nothing', async () => {
    const { hostname, port } = new URL(app.url)
    const paused = Promise.withResolvers<void>()
    let received = 0
    const socket = await Bun.connect({
      hostname,
      port: Number(port),
      socket: {
        data(socket, bytes) {
          received += bytes.byteLength
          if (received > 100_000) {
            socket.pause()
            paused.resolve()
          }
        },
      },
    })
    const head = [
      `GET ${pathOf(REAL, '/flood')} HTTP/1.1`,
      'host: localhost',
      'upgrade: websocket',
      'connection: upgrade',
      'sec-websocket-version: 13',
      'sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==',
      `authorization: Bearer ${app.key}`,
    ]
    socket.write(`${head.join('\r\n')}\r\n\r\n`)
    await paused.promise
    const sent = async () => Number(await app.shell(sandbox, 'cat /tmp/ws-sent || echo 0'))
    let before = -1
    await until(async () => {
      const now = await sent()
      if (now === before) return true
      before = now
      await Bun.sleep(200)
      return false
    })
    expect(before).toBeLessThan(1000)
    let all = received
    socket.reload({
      socket: {
        data(_, bytes) {
          all += bytes.byteLength
        },
      },
    })
    socket.resume()
    await until(() => all > 3000 * 65_536)
    socket.terminate()
  })
})

const frame = (first: number, payload: Buffer | string, size?: number) => {
  const bytes = Buffer.from(payload)
  return Buffer.concat([Buffer.from([first, size ?? bytes.byteLength]), bytes])
}
const rawPath = (kind: string, ...frames: Buffer[]) =>
  `/${kind}?${encodeURIComponent(Buffer.concat(frames).toString('base64'))}`

describe('what a hostile server says', () => {
  const endings: [string, Buffer[], number][] = [
    ['a masked frame', [frame(0x81, 'abcdx', 0x81)], 1002],
    ['a reserved bit', [frame(0xc1, 'x')], 1002],
    ['an unknown kind', [frame(0x83, 'x')], 1002],
    ['an unknown control', [frame(0x8b, 'x')], 1002],
    ['a continuation of nothing', [frame(0x80, 'x')], 1002],
    ['a message within a message', [frame(0x01, 'x'), frame(0x81, 'y')], 1002],
    ['a ping in parts', [frame(0x09, 'x')], 1002],
    ['a ping that is too long', [frame(0x89, Buffer.alloc(130), 126)], 1002],
    ['a close of one byte', [frame(0x88, 'x')], 1002],
    ['a close with a code that is none', [frame(0x88, Buffer.from([0x03, 0xed]))], 1002],
    ['a text that is none', [frame(0x81, Buffer.from([0xff, 0xfe]))], 1007],
    ['a reason that is no text', [frame(0x88, Buffer.from([0x0f, 0xa1, 0xff]))], 1007],
    ['a frame of 2^63 bytes', [Buffer.from([0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0])], 1009],
    ['a frame of 17 MB', [Buffer.from([0x82, 127, 0, 0, 0, 0, 0x01, 0x10, 0, 0])], 1009],
  ]
  test.each(endings)('%s closes both ends: regression', async (_, frames, code) => {
    const client = connect(RAW, rawPath('frames', ...frames))
    expect((await client.ended).code).toBe(code)
    expect(client.messages).toEqual([])
  })

  test('a message of more than 16 MB in all is not passed on', async () => {
    expect((await connect(REAL, '/large').ended).code).toBe(1009)
  })

  test('a message in parts, with a ping between, is one', async () => {
    const frames = [frame(0x01, 'hä'.slice(0, 1)), frame(0x89, 'ping'), frame(0x00, 'ä'), frame(0x80, '!')]
    const client = await opened(RAW, rawPath('parts', ...frames))
    expect(await client.next()).toBe('hä!')
    // The ping is answered by this end, masked.
    await until(async () =>
      (await app.shell(sandbox, 'cat /tmp/ws-got-parts 2>/dev/null | od -An -tx1')).startsWith(' 8a 84'),
    )
    client.socket.close()
  })

  test.each(['bad-accept', 'extension', 'protocol'])('%s is no WebSocket', async kind => {
    const answer = await app.ask('GET', pathOf(RAW, rawPath(kind)), undefined, {
      headers: { upgrade: 'websocket', connection: 'upgrade', 'sec-websocket-protocol': 'one' },
    })
    expect([answer.status, answer.body.error.code]).toEqual([502, 'port_unreachable'])
  })

  test('nothing: a caller who goes away ends it', async () => {
    const client = connect(RAW, rawPath('silent'))
    await until(() => exists('/tmp/ws-silent-begun'))
    ;(client.socket as unknown as { terminate(): void }).terminate()
    await until(() => exists('/tmp/ws-silent-ended'))
  })

  test('nothing, and takes nothing: what a caller sends is bounded: regression', async () => {
    const client = await opened(RAW, rawPath('deaf'))
    const piece = new Uint8Array(1_000_000)
    let isOver = false
    client.ended.then(() => (isOver = true))
    await until(() => {
      for (let count = 0; count < 5 && !isOver; count++) client.socket.send(piece)
      return isOver
    })
    expect((await client.ended).code).toBe(1013)
  })

  test('nothing, and takes nothing: so are small messages, which take more room than they have bytes', async () => {
    const client = await opened(RAW, rawPath('deaf'))
    client.socket.send(new Uint8Array(10_000_000))
    for (let count = 0; count < 100_000; count++) client.socket.send('x')
    expect((await client.ended).code).toBe(1013)
  })

  test('nothing, and takes nothing: what callers of one key send by many sockets is bounded too: regression', async () => {
    const clients = await Promise.all(Array.from({ length: 5 }, () => opened(RAW, rawPath('deaf'))))
    for (const { socket } of clients) socket.send(new Uint8Array(15_000_000))
    const first = await Promise.race(clients.map(client => client.ended))
    expect(first).toMatchObject({ code: 1013, reason: 'Too many messages wait for servers that do not read.' })
    for (const { socket } of clients) socket.close()
  })
})
