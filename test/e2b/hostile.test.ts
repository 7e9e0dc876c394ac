import { beforeAll, describe, expect, test } from 'bun:test'
import { createKey } from '../../src/core/access/keys.ts'
import { createToken } from '../../src/core/access/tokens.ts'
import { readE2bId } from '../../src/core/e2b/ids.ts'
import { signFile, writeE2bToken } from '../../src/core/e2b/tokens.ts'
import { revokeKey } from '../../src/db/keys.ts'
import { findTeam } from '../../src/db/teams.ts'
import { createControl } from '../../src/http/e2b/control.ts'
import type { Scope } from '../../src/model/scope.ts'
import { useApp } from '../support/app.ts'
import { askRaw } from '../support/client.ts'
import { call, type E2bOptions, e2bOptions } from './client.ts'

const app = useApp(['--preview-domain', 'sandboxes.localhost', '--limit', 'address.failures=0'])
let own: E2bOptions
let foreign: E2bOptions
let mine: any
let theirs: any

beforeAll(async () => {
  own = e2bOptions(app)
  foreign = e2bOptions(app, 'other')
  const wish = { templateID: 'base', timeout: 3600, network: { allowPublicTraffic: false } }
  mine = (await call(own, 'POST', '/v2/sandboxes', wish)).body
  theirs = (await call(foreign, 'POST', '/v2/sandboxes', wish)).body
})

/** Every route of the control plane that is about one sandbox. */
const ofSandbox: [string, string, object?][] = [
  ['GET', '/sandboxes/:id'],
  ['DELETE', '/sandboxes/:id'],
  ['POST', '/sandboxes/:id/connect', { timeout: 60 }],
  ['POST', '/v2/sandboxes/:id/connect', {}],
  ['POST', '/sandboxes/:id/resume', { timeout: 60 }],
  ['POST', '/sandboxes/:id/timeout', { timeout: 60 }],
  ['POST', '/sandboxes/:id/refreshes', {}],
  ['POST', '/sandboxes/:id/pause'],
  ['PUT', '/sandboxes/:id/network', {}],
  ['GET', '/sandboxes/:id/metrics'],
  ['POST', '/sandboxes/:id/snapshots', {}],
  ['POST', '/sandboxes/:id/fork', { count: 1 }],
]
const others: [string, string, object?][] = [
  ['POST', '/sandboxes', { templateID: 'base' }],
  ['POST', '/v2/sandboxes', { templateID: 'base' }],
  ['GET', '/sandboxes'],
  ['GET', '/v2/sandboxes'],
  ['GET', '/snapshots'],
  ['DELETE', '/templates/snap_1'],
  ['GET', '/templates'],
  ['GET', '/templates/aliases/base'],
]

test('these are all routes that there are', () => {
  const shapeOf = (method: string, path: string) =>
    `${method} ${path.replace(/:\w+|(?<=(aliases|templates)\/)(?!aliases)[^/]+/g, '*')}`
  const tried = [...ofSandbox, ...others].map(([method, path]) => shapeOf(method, path))
  const routes = createControl(app.runtime).routes.map(({ method, path }) => shapeOf(method, path))
  expect(new Set(tried)).toEqual(new Set(routes))
})

describe('another team’s sandbox is not there', () => {
  test.each(ofSandbox)('%s %s regression', async (method, path, ...[body]) => {
    const answers = []
    for (const id of [theirs.sandboxID, `sbx${'0'.repeat(32)}`, readE2bId(theirs.sandboxID)!, 'x', '..%2f..', '%00'])
      answers.push(await call(own, method, path.replace(':id', id), body))
    expect(answers.map(({ status, body }) => [status, body])).toEqual(
      answers.map(() => [404, { code: 404, message: 'There is no such sandbox.' }]),
    )
    expect((await call(foreign, 'GET', `/sandboxes/${theirs.sandboxID}`)).body.state).toBe('running')
  })

  test('in lists, as a snapshot and as a template regression', async () => {
    expect((await call(own, 'GET', '/v2/sandboxes')).body.map((each: any) => each.sandboxID)).toEqual([mine.sandboxID])
    const { snapshotID } = (await call(foreign, 'POST', `/sandboxes/${theirs.sandboxID}/snapshots`)).body
    expect((await call(own, 'GET', '/snapshots')).body).toEqual([])
    expect((await call(own, 'GET', `/snapshots?name=${snapshotID}`)).body).toEqual([])
    expect((await call(own, 'DELETE', `/templates/${snapshotID}`)).status).toBe(404)
    expect((await call(own, 'POST', '/v2/sandboxes', { templateID: snapshotID })).status).toBe(404)
    expect((await call(own, 'GET', `/snapshots?sandboxID=${theirs.sandboxID}`)).status).toBe(404)
  })
})

describe('without a good key', () => {
  const keys = (): [string, string | undefined][] => {
    const { db } = app.runtime
    const team = findTeam(db, 'default')!
    const revoked = createKey(db, { team: 'default', name: 'gone', isForE2b: true })
    revokeKey(db, revoked.row.id)
    const { token } = createToken(app.runtime, { teamId: team.id }, { lifetimeMs: 60_000 })
    return [
      ['none', undefined],
      ['empty', ''],
      ['an unknown one', `e2b_${'0'.repeat(60)}`],
      ['a revoked one', revoked.key],
      ['a browser’s token', token],
      ['two', `${own.apiKey} x`],
      ['an access token', mine.envdAccessToken],
    ]
  }
  test.each([...ofSandbox, ...others])('%s %s is refused', async (method, path, ...[body]) => {
    const url = app.url + path.replace(':id', mine.sandboxID)
    for (const [what, key] of keys()) {
      // Without a key these are pages of the console.
      if (key === undefined && method === 'GET' && !path.startsWith('/v2')) continue
      const response = await fetch(url, {
        method,
        headers: { ...(key !== undefined && { 'x-api-key': key }), 'content-type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
      })
      expect([what, response.status, await response.json()]).toEqual([
        what,
        401,
        { code: 401, message: expect.any(String) },
      ])
    }
  })

  test('a key may do what its scopes say', async () => {
    const statuses = async (scopes: Scope[]) => {
      const { key } = createKey(app.runtime.db, { team: 'default', name: 'narrow', isForE2b: true, scopes })
      const with_ = { ...own, apiKey: key }
      const list = await call(with_, 'GET', '/v2/sandboxes')
      const extend = await call(with_, 'POST', `/sandboxes/${mine.sandboxID}/timeout`, { timeout: 3600 })
      return [list.status, extend.status]
    }
    expect(await statuses(['read'])).toEqual([200, 403])
    expect(await statuses(['sandboxes'])).toEqual([200, 204])
    expect(await statuses(['chat'])).toEqual([403, 403])
    expect(await statuses(['admin'])).toEqual([200, 204])
  })
})

/** Asks for what needs an access token. */
const envd = (headers: Record<string, string>, path = '/envs') => fetch(app.url + path, { headers })

describe('a token', () => {
  test('opens its own sandbox alone, and what it is for regression', async () => {
    const [id, other] = [mine.sandboxID, theirs.sandboxID]
    const tokens = [
      undefined,
      '',
      theirs.envdAccessToken,
      mine.trafficAccessToken,
      mine.envdAccessToken.slice(0, -1),
      `${mine.envdAccessToken}A`,
      mine.envdAccessToken.toUpperCase(),
      mine.envdAccessToken.replace(id, other),
      own.apiKey,
    ]
    for (const token of tokens) {
      const response = await envd({ 'e2b-sandbox-id': id, ...(token !== undefined && { 'x-access-token': token }) })
      expect([token, response.status, await response.json()]).toEqual([
        token,
        401,
        { code: 401, message: 'The access token is not valid.' },
      ])
    }
    expect((await envd({ 'e2b-sandbox-id': id, 'x-access-token': mine.envdAccessToken })).status).not.toBe(401)
    expect((await envd({ 'x-access-token': mine.envdAccessToken })).status).not.toBe(401)
  })

  test('ends with its key, and with its sandbox regression', async () => {
    const { db } = app.runtime
    const { key, row } = createKey(db, { team: 'default', name: 'short', isForE2b: true })
    const wish = { templateID: 'base', network: { allowPublicTraffic: false } }
    const { body } = await call({ ...own, apiKey: key }, 'POST', '/v2/sandboxes', wish)
    const { sandboxID: id, envdAccessToken, trafficAccessToken } = body
    const signature = signFile({ path: 'a', operation: 'read' }, envdAccessToken)
    const ask = async () => {
      const byToken = await envd({ 'x-access-token': envdAccessToken })
      const signed = await fetch(`${app.url}/files?path=a&signature=${encodeURIComponent(signature)}`)
      const headers = { 'e2b-sandbox-id': id, 'e2b-sandbox-port': '80', 'e2b-traffic-access-token': trafficAccessToken }
      return [byToken.status, signed.status, (await envd(headers)).status]
    }
    expect(await ask()).not.toContain(401)
    revokeKey(db, row.id)
    expect(await ask()).toEqual([401, 401, 403])
    // Another key of the team gets a token of its own, and the older one stays what it was.
    const again = await call(own, 'POST', `/v2/sandboxes/${id}/connect`)
    expect((await envd({ 'x-access-token': again.body.envdAccessToken })).status).not.toBe(401)
    expect(await ask()).toEqual([401, 401, 403])
    await call(own, 'DELETE', `/sandboxes/${id}`)
    expect((await envd({ 'x-access-token': again.body.envdAccessToken })).status).toBe(502)
    expect(await ask()).toEqual([502, 401, 502])
  })
})

describe('a signature', () => {
  const file = { path: 'hello.txt', operation: 'read' } as const
  const seconds = (from: number) => String(Math.floor(Date.now() / 1000) + from)
  const ask = async (signature: string, more: Record<string, string> = {}, headers: Record<string, string> = {}) => {
    const query = new URLSearchParams({ path: 'hello.txt', signature, ...more })
    const response = await fetch(`${app.url}/files?${query}`, { headers })
    return [response.status, ((await response.json().catch(() => ({}))) as { message?: string }).message]
  }

  test('opens what was signed, for as long as was signed regression', async () => {
    const token = mine.envdAccessToken
    const expires = seconds(60)
    expect((await ask(signFile(file, token)))[0]).not.toBe(401)
    expect((await ask(signFile({ ...file, expires }, token), { signature_expiration: expires }))[0]).not.toBe(401)
    const past = seconds(-1)
    expect(await ask(signFile({ ...file, expires: past }, token), { signature_expiration: past })).toEqual([
      401,
      'signature is already expired',
    ])
    const refused = [401, 'The signature is not valid.']
    expect(await ask(signFile({ ...file, expires }, token), { signature_expiration: seconds(120) })).toEqual(refused)
    expect(await ask(signFile({ ...file, path: 'other' }, token))).toEqual(refused)
    expect(await ask(signFile({ ...file, operation: 'write' }, token))).toEqual(refused)
    expect(await ask(signFile({ ...file, user: 'root' }, token))).toEqual(refused)
    expect(await ask(signFile(file, token), { username: 'root' })).toEqual(refused)
    expect(await ask(signFile(file, `${token}x`))).toEqual(refused)
    expect(await ask('')).toEqual(refused)
    expect(await ask('v1_')).toEqual(refused)
    // Neither a secret of the server's own, nor another sandbox by name.
    const traffic = writeE2bToken(app.runtime, 'traffic', readE2bId(mine.sandboxID)!)
    expect(await ask(signFile(file, traffic))).toEqual(refused)
    expect(await ask(signFile(file, token), {}, { 'e2b-sandbox-id': theirs.sandboxID })).toEqual(refused)
    for (const expires of ['', 'NaN', '-1', '0', '1e400', 'x'])
      expect((await ask(signFile({ ...file, expires }, token), { signature_expiration: expires }))[0]).not.toBe(200)
  })
})

describe('a request', () => {
  test('with a body that is too large or no JSON is refused', async () => {
    const send = async (body: string) => {
      const headers = { 'x-api-key': own.apiKey, 'content-type': 'application/json' }
      const response = await fetch(`${app.url}/v2/sandboxes`, { method: 'POST', headers, body })
      return [response.status, ((await response.json()) as { code: number }).code]
    }
    expect(await send('x'.repeat(11 * 1024 * 1024))).toEqual([413, 413])
    expect(await send('{"templateID"')).toEqual([400, 400])
    expect(await send('[]')).toEqual([400, 400])
    expect(await send(`{"templateID":${'['.repeat(10_000)}`)).toEqual([400, 400])
  })

  test.each<[string, object]>([
    ['no template', {}],
    ['a template that is no name', { templateID: 'a\u0000b' }],
    ['a path as template', { templateID: '/etc' }],
    ['too long a name', { templateID: 'x'.repeat(1000) }],
    ['no time', { templateID: 'base', timeout: -1 }],
    ['too much time', { templateID: 'base', timeout: 1e12 }],
    ['half a second', { templateID: 'base', timeout: 0.5 }],
    ['metadata that is no text', { templateID: 'base', metadata: { a: 1 } }],
    ['variables that break a process', { templateID: 'base', envVars: { 'A=B': 'c' } }],
    ['a host that ends a header', { templateID: 'base', network: { maskRequestHost: 'a\r\nx-more: b' } }],
    ['a host with a path', { templateID: 'base', network: { maskRequestHost: 'a/b' } }],
    ['volumes', { templateID: 'base', volumeMounts: [{ name: 'a', path: '/b' }] }],
    ['an identity', { templateID: 'base', iam: { tokens: {} } }],
    ['an MCP server', { templateID: 'base', mcp: { exa: {} } }],
  ])('with %s makes nothing', async (_, wish) => {
    const before = app.environmentIds.length
    const { status, body } = await call(own, 'POST', '/v2/sandboxes', wish)
    expect([status, body.code]).toEqual([status === 404 ? 404 : 400, status])
    expect(app.environmentIds.length).toBe(before)
  })

  test('for a port that is none, by whatever header or host, reaches nothing regression', async () => {
    const traffic = { 'e2b-traffic-access-token': mine.trafficAccessToken, 'x-access-token': mine.envdAccessToken }
    for (const port of ['0', '65536', '-1', '80 ', '1e3', '', '0x50', '٣'])
      expect([
        port,
        (await envd({ ...traffic, 'e2b-sandbox-id': mine.sandboxID, 'e2b-sandbox-port': encodeURI(port) })).status,
      ]).toEqual([port, port === '80 ' ? 400 : 400])
    const hosts = [
      `49983-${mine.sandboxID}.sandboxes.localhost.evil.com`,
      `x49983-${mine.sandboxID}.sandboxes.localhost`,
      `80-${mine.sandboxID}.a.sandboxes.localhost`,
    ]
    for (const host of hosts)
      expect([host, (await envd({ ...traffic, host }, '/envs')).headers.get('x')]).toEqual([host, null])
  })

  test('with an id that has more than an id in it is for no sandbox regression', async () => {
    const token = mine.envdAccessToken
    for (const id of [
      `${mine.sandboxID}\u00e4`,
      `${mine.sandboxID}/..`,
      `${mine.sandboxID},${theirs.sandboxID}`,
      ' ',
      "' or 1=1",
    ])
      expect([id, (await envd({ 'e2b-sandbox-id': id, 'x-access-token': token })).status]).toEqual([id, 502])
    // Old clients append the id of a client.
    expect((await envd({ 'e2b-sandbox-id': `${mine.sandboxID}-threadbox`, 'x-access-token': token })).status).not.toBe(
      502,
    )
  })

  test('cannot add headers or a second request to what a program gets regression', async () => {
    const { host } = new URL(app.url)
    const head = (lines: string[]) =>
      ['GET / HTTP/1.1', `host: ${host}`, ...lines, 'connection: close', '', ''].join('\r\n')
    const port = [
      `e2b-sandbox-id: ${mine.sandboxID}`,
      'e2b-sandbox-port: 80',
      `e2b-traffic-access-token: ${mine.trafficAccessToken}`,
    ]
    for (const lines of [
      ['content-length: 4', 'transfer-encoding: chunked'],
      ['e2b-sandbox-port: 81'],
      [`e2b-sandbox-id: ${theirs.sandboxID}`],
    ])
      expect((await askRaw(app.url, head([...port, ...lines]))).status).toBeWithin(400, 503)
  })
})

test('the console’s page and the API stay what they are beside it', async () => {
  expect((await app.request('GET', '/v1/sandboxes')).status).toBe(200)
  expect((await app.request('GET', '/health')).status).toBe(200)
  const page = await fetch(`${app.url}/sandboxes`)
  expect(page.headers.get('content-type')).toContain('text/html')
  const { status } = await fetch(`${app.url}/v1/sandboxes`, { headers: { 'x-api-key': own.apiKey } })
  expect(status).toBe(401)
  expect(app.log.filter(line => line.startsWith('error'))).toEqual([])
})
