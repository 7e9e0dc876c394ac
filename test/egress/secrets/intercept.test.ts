import { afterEach, describe, expect, test } from 'bun:test'
import { gzipSync } from 'node:zlib'
import { all, loopback, SANDBOX, until } from '../support.ts'
import { bind, carried, closeAll, NAME, openHost, openRawHost, openSecretBench, PLACEHOLDER, SECRET } from './host.ts'

afterEach(closeAll)

const MASK = '*'.repeat(SECRET.length)
const get = (authority: string, path = '/', more = '') =>
  `GET ${path} HTTP/1.1\r\nHost: ${authority}\r\n${more}Connection: close\r\n\r\n`
const post = (authority: string, body: string, type: string, more = '') =>
  `POST /form HTTP/1.1\r\nHost: ${authority}\r\nContent-Type: ${type}\r\nContent-Length: ${body.length}\r\n${more}Connection: close\r\n\r\n${body}`

describe('a secret goes', () => {
  test('into a header, in place of what the program says there, and each use is told', async () => {
    const [bench, host] = [await openSecretBench(), await openHost()]
    bench.bound = [bind(host.authority)]
    const answer = await bench.say(host.authority, get(host.authority, '/repos/o?q=1', 'Authorization: mine\r\n'))
    expect(answer).toEndWith('\r\n\r\nok')
    expect(host.requests[0]?.headers.authorization).toBe(`Bearer ${SECRET}`)
    expect(bench.uses).toEqual([{ name: 'GITHUB', host: NAME, port: host.port, method: 'GET', path: '/repos/o' }])
    expect(bench.lines.join()).not.toContain(SECRET)
  })

  test('into Basic and into the query', async () => {
    const [bench, host] = [await openSecretBench(), await openHost()]
    bench.bound = [
      bind(host.authority, { as: { basic: { user: 'git' } } }),
      bind(host.authority, { as: { query: 'key' } }),
    ]
    await bench.say(host.authority, get(host.authority, '/x?a=1&key=mine&b=%20&k%65y=mine'))
    const [request] = host.requests
    expect(request?.headers.authorization).toBe(`Basic ${Buffer.from(`git:${SECRET}`).toString('base64')}`)
    expect(request?.url).toBe(`/x?a=1&b=%20&key=${encodeURIComponent(SECRET)}`)
  })

  test('in place of its placeholder: in headers, in Basic, in the query and in forms', async () => {
    const [bench, host] = [await openSecretBench(), await openHost()]
    bench.bound = [bind(host.authority, { as: { env: 'TOKEN' }, placeholder: PLACEHOLDER })]
    const basic = Buffer.from(`me:${PLACEHOLDER}`).toString('base64')
    await bench.say(
      host.authority,
      get(
        host.authority,
        `/${PLACEHOLDER}?t=${PLACEHOLDER}`,
        `X-Token: a ${PLACEHOLDER}\r\nAuthorization: Basic ${basic}\r\n`,
      ),
    )
    const [first] = host.requests
    expect(first?.headers['x-token']).toBe(`a ${SECRET}`)
    expect(first?.headers.authorization).toBe(`Basic ${Buffer.from(`me:${SECRET}`).toString('base64')}`)
    expect(first?.url).toBe(`/${PLACEHOLDER}?t=${encodeURIComponent(SECRET)}`)

    const form = 'application/x-www-form-urlencoded'
    await bench.say(host.authority, post(host.authority, `a=1&t=${PLACEHOLDER}`, form))
    expect(host.requests[1]?.body).toBe(`a=1&t=${encodeURIComponent(SECRET)}`)
    const multipart = `--b\r\nContent-Disposition: form-data; name="t"\r\n\r\n${PLACEHOLDER}\r\n--b--\r\n`
    await bench.say(host.authority, post(host.authority, multipart, 'multipart/form-data; boundary=b'))
    expect(host.requests[2]?.body).toContain(`\r\n\r\n${SECRET}\r\n--b--`)
    const chunked = `POST /form HTTP/1.1\r\nHost: ${host.authority}\r\nContent-Type: ${form}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n`
    const [one, other] = [`t=${PLACEHOLDER.slice(0, 5)}`, PLACEHOLDER.slice(5)]
    const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`
    await bench.say(host.authority, `${chunked}${chunk(one)}${chunk(other)}0\r\n\r\n`)
    expect(host.requests[3]?.body).toBe(`t=${encodeURIComponent(SECRET)}`)
    expect(bench.uses).toHaveLength(4)
  })

  test('nowhere else: other bodies and larger forms pass as they are', async () => {
    const [bench, host] = [await openSecretBench(), await openHost()]
    bench.bound = [bind(host.authority, { as: { env: 'TOKEN' }, placeholder: PLACEHOLDER })]
    const large = `a=${'x'.repeat(1024 * 1024)}&t=${PLACEHOLDER}`
    await bench.say(host.authority, post(host.authority, `{"t":"${PLACEHOLDER}"}`, 'application/json'))
    await bench.say(host.authority, post(host.authority, large, 'application/x-www-form-urlencoded'))
    expect(host.requests.map(({ body }) => body)).toEqual([`{"t":"${PLACEHOLDER}"}`, large])
    expect(bench.uses).toEqual([])
  })

  test('only with its methods and paths: other requests pass with what the program sent', async () => {
    const [bench, host] = [await openSecretBench(), await openHost()]
    bench.bound = [bind(host.authority, { methods: ['GET'], paths: ['/repos/**'] })]
    for (const path of ['/repos/o', '/user', '/repos/../user', '/repos/%2e%2e/user']) {
      await bench.say(host.authority, get(host.authority, path, 'Authorization: mine\r\n'))
    }
    const sent = host.requests.map(({ headers }) => headers.authorization)
    expect(sent).toEqual([`Bearer ${SECRET}`, 'mine', 'mine', 'mine'])
    expect(bench.uses).toHaveLength(1)
  })

  test('as it is now: a change holds at the next request of a connection, a removal refuses it', async () => {
    const [bench, host] = [await openSecretBench(), await openHost()]
    let value: string | undefined = 'first-value'
    bench.bound = [
      bind(host.authority, {
        value() {
          if (value === undefined) throw new Error('removed')
          return value
        },
      }),
    ]
    const socket = await bench.open(host.authority)
    const request = `GET / HTTP/1.1\r\nHost: ${host.authority}\r\n\r\n`
    socket.write(request)
    await until(socket, '\r\n\r\nok')
    value = 'second-value'
    socket.write(request)
    await until(socket, '\r\n\r\nok')
    value = undefined
    socket.write(request)
    expect(await all(socket)).toContain('this request needs the secret GITHUB, which was removed')
    expect(host.requests.map(({ headers }) => headers.authorization)).toEqual([
      'Bearer first-value',
      'Bearer second-value',
    ])
  })

  test('not at all while it is missing: requests that do not need it pass, others are refused by its name', async () => {
    const [bench, host] = [await openSecretBench(), await openHost()]
    const value = () => {
      throw new Error('removed')
    }
    bench.bound = [
      bind(host.authority, { name: 'GONE', value, methods: ['POST'] }),
      bind(host.authority, { name: 'GONE_TOO', value, as: { env: 'TOKEN' }, placeholder: PLACEHOLDER }),
      bind(host.authority, { name: 'OVERRIDDEN', value, as: { header: 'x-key' } }),
      bind(host.authority, { as: { header: 'X-Key' } }),
    ]
    const form = 'application/x-www-form-urlencoded'
    const put = (body: string) => post(host.authority, body, form).replace('POST', 'PUT')
    expect(await bench.say(host.authority, get(host.authority))).toContain('ok')
    expect(await bench.say(host.authority, put('a=b'))).toContain('ok')
    expect(host.requests.map(({ headers }) => headers['x-key'])).toEqual([SECRET, SECRET])
    const refused = [
      [post(host.authority, 'a=b', form), 'GONE'],
      [get(host.authority, '/', `Token: ${PLACEHOLDER}\r\n`), 'GONE_TOO'],
      [get(host.authority, `/?token=${PLACEHOLDER}`), 'GONE_TOO'],
      [put(`t=${PLACEHOLDER}`), 'GONE_TOO'],
    ] as const
    for (const [request, name] of refused) {
      const answer = await bench.say(host.authority, request)
      expect(answer).toStartWith('HTTP/1.1 502 ')
      expect(answer).toContain(`this request needs the secret ${name}, which was removed`)
    }
    expect(host.requests).toHaveLength(2)
  })
})

describe('an answer', () => {
  test('has no secret that the host repeats, in headers, body and trailers', async () => {
    const [bench, host] = [
      await openSecretBench(),
      await openRawHost(socket => {
        socket.once('data', () => {
          const half = SECRET.length / 2
          const [one, other] = [`a ${SECRET.slice(0, half)}`, `${SECRET.slice(half)} b`]
          const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`
          socket.write(`HTTP/1.1 200 ${SECRET}\r\nX-Echo: ${SECRET}\r\nTransfer-Encoding: chunked\r\n\r\n${chunk(one)}`)
          setImmediate(() => socket.end(`${chunk(other)}0\r\nX-Last: ${SECRET}\r\n\r\n`))
        })
      }),
    ]
    bench.bound = [bind(host.authority)]
    const answer = await bench.say(host.authority, get(host.authority))
    expect(answer).not.toContain(SECRET.slice(0, 10))
    expect(answer).toStartWith(`HTTP/1.1 200 ${MASK}\r\n`)
    expect(answer).toContain(`x-echo: ${MASK}\r\n`)
    expect(answer).toContain(`x-last: ${MASK}\r\n`)
    expect(answer.replace(/\r\n[0-9a-f]+\r\n/g, '')).toContain(`a ${MASK} b`)
  })

  test('that is compressed unasked is opened, and one that cannot be is refused', async () => {
    const [bench, host] = [
      await openSecretBench(),
      await openHost(({ url }, response) => {
        const encoding = url.slice(1)
        response.setHeader('content-encoding', encoding)
        response.end(encoding === 'gzip' ? gzipSync(`it is ${SECRET}`) : 'xx')
      }),
    ]
    bench.bound = [bind(host.authority)]
    const answer = await bench.say(host.authority, get(host.authority, '/gzip', 'Accept-Encoding: gzip, br\r\n'))
    expect(answer).toContain(`it is ${MASK}`)
    expect(answer.toLowerCase()).not.toContain('content-encoding')
    expect(host.requests[0]?.headers['accept-encoding']).toBe('identity')
    expect(await bench.say(host.authority, get(host.authority, '/made-up'))).toStartWith('HTTP/1.1 502 ')
  })

  test('in ranges has no secret either, and ranges are asked for one at a time: regression', async () => {
    const [bench, host] = [
      await openSecretBench(),
      await openHost(({ headers }, response) => {
        const whole = Buffer.from(`it is ${SECRET}`)
        const [, from = '', to = ''] = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? '') ?? []
        const part = from === '' ? whole : whole.subarray(Number(from), Number(to) + 1)
        response.writeHead(from === '' ? 200 : 206)
        response.end(part)
      }),
    ]
    bench.bound = [bind(host.authority)]
    const ask = async (range: string) => {
      const answer = await bench.say(host.authority, get(host.authority, '/', `Range: bytes=${range}\r\n`))
      return answer.slice(answer.indexOf('\r\n\r\n') + 4)
    }
    expect(await ask('0-13')).toContain('it is ********')
    expect(await ask('10-15')).toContain('******')
    expect(await ask('10-99')).toContain('*'.repeat(SECRET.length - 4))
    expect(await ask('0-13,14-20')).toContain(`it is ${MASK}`)
    expect(host.requests.map(({ headers }) => headers.range)).toEqual([
      'bytes=0-13',
      'bytes=10-15',
      'bytes=10-99',
      undefined,
    ])
  })

  test('of events comes as they are said', async () => {
    let say = (_: string) => {}
    const [bench, host] = [
      await openSecretBench(),
      await openHost((_, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        say = text => void response.write(text)
        say('data: one\n\n')
      }),
    ]
    bench.bound = [bind(host.authority)]
    const socket = await bench.open(host.authority)
    socket.write(get(host.authority))
    await until(socket, 'data: one\n\n')
    say('data: two\n\n')
    await until(socket, 'data: two\n\n')
  })

  test('to HEAD, and one announced by 100 and 103, come as they are', async () => {
    const [bench, host] = [
      await openSecretBench(),
      await openRawHost(socket => {
        socket.once('data', piece => {
          if (piece.toString().startsWith('HEAD'))
            return void socket.end('HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n')
          socket.write(`HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: ${SECRET}\r\n\r\n`)
          socket.once('data', body => socket.end(`HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n${body}`))
        })
      }),
    ]
    bench.bound = [bind(host.authority)]
    const head = await bench.say(
      host.authority,
      `HEAD / HTTP/1.1\r\nHost: ${host.authority}\r\nConnection: close\r\n\r\n`,
    )
    expect(head).toContain('content-length: 1234\r\n')
    const socket = await bench.open(host.authority)
    socket.write(`PUT / HTTP/1.1\r\nHost: ${host.authority}\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n`)
    expect(await until(socket, `link: ${MASK}\r\n\r\n`)).toStartWith('HTTP/1.1 100 Continue\r\n\r\n')
    socket.write('body')
    await until(socket, '\r\n\r\nbody')
  })

  test.each([
    ['a socket', undefined],
    ['a stream', carried],
  ])('is waited for by a slow program on %s instead of buffered', async (_, toStream) => {
    let sent = 0
    const [bench, host] = [
      await openSecretBench({}, undefined, toStream),
      await openHost((_, response) => {
        const piece = Buffer.alloc(65_536)
        const fill = () => {
          while (sent < 200_000_000) {
            sent += piece.byteLength
            if (!response.write(piece)) return void response.once('drain', fill)
          }
        }
        fill()
      }),
    ]
    bench.bound = [bind(host.authority)]
    const socket = await bench.open(host.authority)
    socket.write(get(host.authority))
    await until(socket, '\r\n\r\n')
    socket.pause()
    for (let before = -1; before !== sent; await Bun.sleep(100)) before = sent
    expect(sent).toBeLessThan(60_000_000)
  })
})

test('connections are kept for more requests, also those sent ahead', async () => {
  let connections = 0
  const [bench, host] = [await openSecretBench(), await openHost()]
  const counted = await openRawHost(socket => {
    connections++
    socket.on('data', piece => {
      for (const _ of piece.toString().matchAll(/GET /g)) socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
    })
  })
  bench.bound = [bind(host.authority), bind(counted.authority)]
  const request = `GET / HTTP/1.1\r\nHost: ${counted.authority}\r\n\r\n`
  const answer = await bench.say(counted.authority, request + request + get(counted.authority))
  expect(answer.match(/200 OK/g)).toHaveLength(3)
  expect(connections).toBe(1)
})

test('a WebSocket is carried both ways, without compression, and what it repeats is taken out', async () => {
  let head = ''
  const [bench, host] = [
    await openSecretBench(),
    await openRawHost(socket => {
      socket.once('data', piece => {
        head = piece.toString()
        socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n')
        socket.on('data', frame => socket.write(`echo ${frame} ${SECRET}.`))
      })
    }),
  ]
  bench.bound = [bind(host.authority)]
  const socket = await bench.open(host.authority)
  const asking = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n'
  socket.write(`GET /live HTTP/1.1\r\nHost: ${host.authority}\r\n${asking}`)
  expect(await until(socket, '\r\n\r\n')).toStartWith('HTTP/1.1 101 ')
  expect(head).toContain(`authorization: Bearer ${SECRET}`)
  expect(head).not.toContain('deflate')
  socket.write('frame')
  expect(await until(socket, '.')).toBe(`echo frame ${MASK}.`)
})

test('a forgotten sandbox, and rules that no longer allow the host, cut what is open', async () => {
  const [bench, host] = [await openSecretBench(), await openHost((_, response) => response.write('begun'))]
  bench.bound = [bind(host.authority)]
  const cuts = [
    () => {
      bench.policy = { ...loopback, layers: [{ allow: [], deny: [] }] }
      bench.egress.refresh(SANDBOX)
      bench.policy = loopback
    },
    () => bench.egress.forget(SANDBOX),
  ]
  for (const cut of cuts) {
    const socket = await bench.open(host.authority)
    socket.write(get(host.authority))
    await until(socket, 'begun')
    const ended = all(socket)
    cut()
    expect(await ended).toBe('')
  }
})
