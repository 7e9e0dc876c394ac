import { beforeAll, describe, expect, test } from 'bun:test'
import { Sandbox } from 'e2b'
import { readE2bId } from '../../src/core/e2b/ids.ts'
import { useApp } from '../support/app.ts'
import { raw, startInside, startPreviewServer } from '../support/preview-server.ts'
import { until } from '../support/until.ts'
import { call, type E2bOptions, e2bOptions } from './client.ts'

const DOMAIN = 'sandboxes.localhost'
/** The guest is a Bun. */
const RUN = 'BUN_BE_BUN=1 /dev/.threadbox/threadbox run socket.js'
const app = useApp(['--preview-domain', DOMAIN])
const [PORT, SOCKETS, CLOSED] = [8400, 8401, 8402]
let options: E2bOptions
let open: any
let closed: any

const socketServer = `
Bun.serve({
  hostname: '127.0.0.1', port: Number(process.argv[2]),
  fetch(request, server) {
    if (server.upgrade(request, { data: { url: request.url, host: request.headers.get('host') } })) return
    return new Response('plain')
  },
  websocket: {
    open(ws) { ws.send(JSON.stringify(ws.data)) },
    message(ws, text) { ws.send('you said ' + text) },
  },
})
`

const create = async (fields: object = {}): Promise<any> =>
  (await call(options, 'POST', '/v2/sandboxes', { templateID: 'base', ...fields })).body

beforeAll(async () => {
  options = e2bOptions(app)
  open = await create()
  closed = await create({ network: { allowPublicTraffic: false, maskRequestHost: 'localhost:$' + '{PORT}' } })
  for (const { sandboxID } of [open, closed]) await startPreviewServer(app, readE2bId(sandboxID)!, PORT)
  await startInside(app, readE2bId(open.sandboxID)!, SOCKETS, 'socket.js', socketServer, RUN)
})

type Way = (id: string, port: number) => Record<string, string>
const byHost: Way = (id, port) => ({ host: `${port}-${id}.${DOMAIN}` })
const byHeader: Way = (id, port) => ({ 'e2b-sandbox-id': id, 'e2b-sandbox-port': String(port) })

const ask = (headers: Record<string, string>, path = '/', init: RequestInit = {}) =>
  fetch(app.url + path, { ...init, headers, redirect: 'manual' })

describe.each([
  ['a host', byHost],
  ['headers', byHeader],
] as const)('a port by %s', (_, way) => {
  test('is any program in the sandbox, with path, method and body as they are', async () => {
    const response = await ask({ ...way(open.sandboxID, PORT), 'x-mine': 'kept' }, '/v1/sandboxes?a=%20b', {
      method: 'POST',
      body: 'the body',
    })
    const text = await response.text()
    expect([response.status, text]).toEqual([200, expect.stringContaining('POST /v1/sandboxes?a=%20b HTTP/1.1\r\n')])
    expect(text).toContain('x-mine: kept')
    expect(text).toEndWith('\n\nthe body')
    expect(text).not.toMatch(/e2b-|traffic/i)
  })

  test('streams events as they come', async () => {
    const response = await ask(way(open.sandboxID, PORT), '/sse')
    const reader = response.body!.getReader()
    const next = async () => new TextDecoder().decode((await reader.read()).value)
    for (const event of [0, 1, 2]) {
      expect(await next()).toBe(`data: ${event}\n\n`)
      await ask(way(open.sandboxID, PORT), '/next')
    }
    expect(await next()).toBe('')
  })

  test('takes WebSockets', async () => {
    const socket = new WebSocket(`${app.url.replace('http', 'ws')}/chat?a=b`, {
      headers: way(open.sandboxID, SOCKETS),
    } as never)
    const messages: string[] = []
    socket.onmessage = ({ data }) => void messages.push(data)
    socket.onopen = () => socket.send('hello')
    await until(() => messages.length === 2)
    expect(JSON.parse(messages[0]!).url).toEndWith('/chat?a=b')
    expect(messages[1]).toBe('you said hello')
    socket.close()
  })

  test('that nothing listens on is 502', async () => {
    const response = await ask(way(open.sandboxID, CLOSED))
    expect([response.status, await response.json()]).toEqual([
      502,
      {
        ...{ sandboxId: open.sandboxID, message: 'The sandbox is running but port is not open' },
        ...{ port: CLOSED, code: 502 },
      },
    ])
  })

  test('of a sandbox that is not there is 502', async () => {
    const id = `sbx${'0'.repeat(32)}`
    const response = await ask(way(id, PORT))
    expect([response.status, await response.json()]).toEqual([
      502,
      { sandboxId: id, message: 'The sandbox was not found', code: 502 },
    ])
  })

  test('that is private wants its token, and the program does not see it', async () => {
    const token = closed.trafficAccessToken
    const wrong = [undefined, '', 'x', open.envdAccessToken, closed.envdAccessToken, `${token}x`, token.slice(0, -1)]
    for (const each of wrong) {
      const headers = {
        ...way(closed.sandboxID, PORT),
        ...(each !== undefined && { 'e2b-traffic-access-token': each }),
      }
      const response = await ask(headers)
      expect([response.status, await response.json()]).toEqual([
        403,
        { code: 403, message: 'The port needs the traffic access token.' },
      ])
    }
    const response = await ask({ ...way(closed.sandboxID, PORT), 'e2b-traffic-access-token': token })
    const text = await response.text()
    expect(response.status).toBe(200)
    expect(text).not.toContain(token)
    expect(text).toContain(`host: localhost:${PORT}\r\n`)
  })
})

test('a port by a host keeps cookies for itself, and sees its own host', async () => {
  const headers = byHost(open.sandboxID, PORT)
  const answer = raw(
    'HTTP/1.1 200 OK',
    'set-cookie: a=b; Domain=sandboxes.localhost; Path=/; HttpOnly',
    'content-length: 0',
    '',
    '',
  )
  const response = await ask(headers, answer)
  expect(response.headers.getSetCookie()).toEqual(['a=b; Path=/; HttpOnly'])
  const text = await (await ask({ ...headers, cookie: 'a=b', authorization: 'Basic dTpw' })).text()
  expect(text).toContain(`host: ${headers.host}\r\n`)
  expect(text).toContain('cookie: a=b')
  expect(text).toContain('authorization: Basic dTpw')
})

test('a port by headers has nothing of this server’s origin regression', async () => {
  const headers = byHeader(open.sandboxID, PORT)
  const answer = raw('HTTP/1.1 200 OK', 'set-cookie: a=b', 'clear-site-data: "*"', 'content-length: 0', '', '')
  const response = await ask(headers, answer)
  expect(response.headers.getSetCookie()).toEqual([])
  expect(response.headers.get('clear-site-data')).toBeNull()
  expect(response.headers.get('content-security-policy')).toContain('sandbox')
  const text = await (
    await ask({
      ...headers,
      cookie: 'threadbox_session=x',
      authorization: `Bearer ${app.key}`,
      'x-api-key': options.apiKey,
    })
  ).text()
  expect(text).not.toContain('threadbox_session')
  expect(text).not.toContain(app.key)
  expect(text).not.toContain(options.apiKey)
})

test('a request for a port wakes a sandbox whose client wants that, and no other', async () => {
  const [waking, sleeping] = [await create({ autoResume: { enabled: true } }), await create()]
  const state = async (id: string) => (await call(options, 'GET', `/sandboxes/${id}`)).body.state
  for (const { sandboxID } of [waking, sleeping]) await call(options, 'POST', `/sandboxes/${sandboxID}/pause`)
  const statuses = []
  for (const { sandboxID } of [waking, sleeping]) {
    // To ask how it is wakes none.
    expect((await ask(byHeader(sandboxID, 49_983), '/health')).status).toBe(502)
    expect(await state(sandboxID)).toBe('paused')
    const response = await ask(byHost(sandboxID, PORT))
    statuses.push([((await response.json()) as { message: string }).message, await state(sandboxID)])
  }
  expect(statuses).toEqual([
    ['The sandbox is running but port is not open', 'running'],
    ['The sandbox was not found', 'paused'],
  ])
  for (const { sandboxID } of [waking, sleeping]) await call(options, 'DELETE', `/sandboxes/${sandboxID}`)
})

test('a kill and a pause cut what streams, and the sandbox is gone at once', async () => {
  for (const end of ['kill', 'pause', 'native'] as const) {
    const { sandboxID: id } = await create()
    await startPreviewServer(app, readE2bId(id)!, PORT)
    const reader = (await ask(byHeader(id, PORT), '/sse')).body!.getReader()
    await reader.read()
    const broken = (async () => {
      for (;;) if ((await reader.read()).done) return 'ended'
    })().catch(() => 'broken')
    if (end === 'native') await app.ask('DELETE', `/v1/sandboxes/${readE2bId(id)}`)
    else if (end === 'kill') await call(options, 'DELETE', `/sandboxes/${id}`)
    else await call(options, 'POST', `/sandboxes/${id}/pause`)
    expect([end, (await ask(byHeader(id, 49_983), '/health')).status]).toEqual([end, 502])
    expect([end, await broken]).toEqual([end, 'broken'])
    await call(options, 'DELETE', `/sandboxes/${id}`)
  }
})

test('getHost leads there', async () => {
  const sandbox = await Sandbox.connect(open.sandboxID, options)
  expect(sandbox.getHost(PORT)).toBe(`${PORT}-${open.sandboxID}.${DOMAIN}`)
  const response = await ask({ host: `${sandbox.getHost(PORT).toUpperCase()}:80` }, '/hash', {
    method: 'POST',
    body: 'x',
  })
  expect(await response.text()).toStartWith('1 ')
})
