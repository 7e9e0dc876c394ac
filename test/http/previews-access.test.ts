import { beforeAll, describe, expect, test } from 'bun:test'
import { createKey } from '../../src/core/access/keys.ts'
import { createLink } from '../../src/core/sandboxes/preview-links.ts'
import { revokeKey } from '../../src/db/keys.ts'
import { findTeam } from '../../src/db/teams.ts'
import { useApp } from '../support/app.ts'
import { codeOf, send } from '../support/client.ts'
import { raw, startPreviewServer } from '../support/preview-server.ts'

// Each link that is refused in these tests is one too many for one address.
const app = useApp(['--origins', 'https://allowed.example', '--limit', 'address.failures=0'])
const outside = useApp(['--public-url', 'https://public.example/base'])
const PORT = 8300
let sandbox: string
let home: string

beforeAll(async () => {
  app.agent('other')
  sandbox = await app.sandbox()
  home = `/v1/sandboxes/${sandbox}/ports/${PORT}`
  await startPreviewServer(app, sandbox, PORT)
})

const token = async (fields: object) => (await app.ask('POST', '/v1/tokens', fields)).body.token as string
const link = async (path = home, options: object = {}, body?: object) =>
  (await app.ask('POST', `${path}/link`, body, options)).body.url as string
/** As a browser opens it: without a key. */
const open = (url: string, headers: Record<string, string> = {}) => send('', 'GET', url, { headers })
const outcome = async (response: Response) =>
  codeOf({ status: response.status, body: await response.json().catch(() => ({})) })

describe('a preview is as open as exec', () => {
  const callers: [string, () => Promise<string | null>, string][] = [
    ['nobody', async () => null, '401 unauthorized'],
    ['an unknown key', async () => 'tbx_none', '401 unauthorized'],
    ['a key of another team', async () => app.foreignKey, '404 sandbox_not_found'],
    ['a token of another agent', () => token({ agents: ['other'] }), '403 forbidden'],
    ['a token of another user', () => token({ userId: 'somebody' }), '404 sandbox_not_found'],
    ['a token of the agent', () => token({ agents: ['echo'] }), '200 undefined'],
    ['a key', async () => app.key, '200 undefined'],
  ]
  test.each(callers)('%s', async (_, key, wanted) => {
    const options = { key: await key() }
    expect(await outcome(await app.request('GET', `${home}/`, options))).toBe(wanted)
    expect(codeOf(await app.ask('POST', `${home}/link`, undefined, options))).toBe(wanted.replace('200', '201'))
    const socket = await app.request('GET', `${home}/`, {
      ...options,
      headers: { upgrade: 'websocket', connection: 'upgrade' },
    })
    expect(await outcome(socket)).toBe(wanted)
  })
})

describe('a link', () => {
  test('opens the port, with all that is below it, to who has no key', async () => {
    const url = await link()
    expect(url).toStartWith(`${app.url}${home}/tbl_`)
    expect(url).toEndWith('/')
    const prefix = new URL(url).pathname.slice(0, -1)
    const text = await (await open(`${url}a/b?c=d`)).text()
    expect(text).toStartWith('GET /a/b?c=d HTTP/1.1\r\n')
    expect(text).toContain(`\r\nx-forwarded-prefix: ${prefix}\r\n`)
    const redirect = await open(url.slice(0, -1))
    expect([redirect.status, redirect.headers.get('location')]).toEqual([307, `${prefix}/`])
    const moved = await open(
      url.slice(0, -1) + raw('HTTP/1.1 302 Found', 'location: /login', 'content-length: 0', '', ''),
    )
    expect(moved.headers.get('location')).toBe(`${prefix}/login`)
    // Below a link all is the server's.
    expect(await (await send('', 'POST', `${url}link`, {})).text()).toStartWith('POST /link HTTP/1.1')
  })

  test('is good for an hour, or as long as was asked for', async () => {
    for (const [expiresIn, seconds] of [
      [undefined, 3600],
      ['5m', 300],
      ['30d', 30 * 86_400],
      ['90d', 30 * 86_400],
    ] as const) {
      const { status, body } = await app.ask('POST', `${home}/link`, expiresIn && { expiresIn })
      expect([status, Object.keys(body).sort()]).toEqual([201, ['expiresAt', 'url']])
      expect(Math.abs(Date.parse(body.expiresAt) - Date.now() - seconds * 1000)).toBeLessThan(5000)
    }
    expect(codeOf(await app.ask('POST', `${home}/link`, { expiresIn: 'long' }))).toBe('400 invalid_request')
  })

  test('is for its sandbox and port alone, and nothing else: regression', async () => {
    const own = (await link()).split('/').at(-2) ?? ''
    const other = await app.sandbox()
    for (const path of [
      `/v1/sandboxes/${sandbox}/ports/${PORT + 1}/${own}/`,
      `/v1/sandboxes/${other}/ports/${PORT}/${own}/`,
      `/v1/sandboxes/${sandbox}/ports/${PORT}/tbl_/${own}/`,
      `/v1/sandboxes/${sandbox}/ports/${PORT}/x/${own}/`,
      `/v1/sandboxes/${sandbox}/${own}/`,
      `/v1/sandboxes/${sandbox}/ports/${PORT}/${own}/../../../exec`,
      `/v1/sandboxes?${own}`,
    ]) {
      expect(await outcome(await open(app.url + path))).toBe('401 unauthorized')
    }
    expect(await outcome(await app.request('GET', '/v1/sandboxes', { key: own }))).toBe('401 unauthorized')
    const bearer = await token({})
    expect(await outcome(await open(`${app.url}${home}/${bearer.replace('tbt_', 'tbl_')}/`))).toBe('401 unauthorized')
    for (const key of [own.replace('tbl_', 'tbt_'), `tbt_${own}`]) {
      expect(await outcome(await app.request('GET', '/v1/sandboxes', { key }))).toBe('401 unauthorized')
    }
  })

  test('that was changed, or is over, opens nothing: regression', async () => {
    const [body = '', signature = ''] = (await link()).split('/').at(-2)?.slice(4).split('.') ?? []
    const later = Buffer.from(
      Buffer.from(body, 'base64url')
        .toString()
        .replace(/"expires":\d+/, '"expires":9999999999'),
    )
    for (const forged of [
      `${later.toString('base64url')}.${signature}`,
      `${body}.`,
      `${body}`,
      `.${signature}`,
      '',
      `${body}.${signature}.x`,
      `${body}.${signature}.`,
    ]) {
      expect(await outcome(await open(`${app.url}${home}/tbl_${forged}/`))).toBe('401 unauthorized')
    }
    const bearer = await token({})
    expect((await app.request('GET', '/v1/sandboxes', { key: bearer })).status).toBe(200)
    for (const key of [`${bearer}.x`, `${bearer}.`, `${bearer}..`]) {
      expect(await outcome(await app.request('GET', '/v1/sandboxes', { key }))).toBe('401 unauthorized')
    }
    const { id: teamId } = findTeam(app.runtime.db, 'default')!
    const past = createLink(app.runtime, { teamId }, { sandbox, port: PORT, lifetimeMs: -1000 })
    const answer = await send('', 'GET', `${app.url}${home}/${past.link}/`)
    expect(((await answer.json()) as Error).message).toBe('The link has expired.')
  })

  test('ends with the key that made it, and with the token: regression', async () => {
    const { key, row } = createKey(app.runtime.db, { team: 'default', name: 'short' })
    const url = await link(home, { key })
    const short = (await app.ask('POST', '/v1/tokens', { expiresIn: '2m' }, { key })).body
    const byToken = await app.ask('POST', `${home}/link`, { expiresIn: '1d' }, { key: short.token })
    expect(byToken.body.expiresAt).toBe(short.expiresAt)
    const all = [url, byToken.body.url]
    expect(await Promise.all(all.map(async each => (await open(each)).status))).toEqual([200, 200])
    app.beside(db => revokeKey(db, row.id))
    expect(await Promise.all(all.map(async each => (await open(each)).status))).toEqual([401, 401])
  })

  test('is over when the key that made it is, and so is a token: regression', async () => {
    const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
    const { key, row } = createKey(app.runtime.db, { team: 'default', name: 'month', expiresAt })
    const url = await link(home, { key })
    const { token } = (await app.ask('POST', '/v1/tokens', {}, { key })).body
    const outcomes = async () => [
      (await open(url)).status,
      (await app.request('GET', '/v1/sandboxes', { key: token })).status,
    ]
    expect(await outcomes()).toEqual([200, 200])
    const past = new Date(Date.now() - 1000).toISOString()
    app.beside(db => db.query('update api_keys set expires_at = $past where id = $id').run({ id: row.id, past }))
    expect(await outcomes()).toEqual([401, 401])
  })

  test('of a token stays within its scope', async () => {
    const user = await token({ userId: 'u1' })
    const own = (await app.ask('POST', '/v1/sandboxes', { agent: 'echo' }, { key: user })).body.id
    const url = await link(`/v1/sandboxes/${own}/ports/${PORT}`, { key: user })
    expect(await outcome(await open(url))).toBe('502 port_unreachable')
    expect((await app.ask('DELETE', `/v1/sandboxes/${own}`)).status).toBe(204)
    expect(await outcome(await open(url))).toBe('404 sandbox_not_found')
  })
})

test('with a public URL, links and redirects are as they are seen from there', async () => {
  const id = await outside.sandbox()
  const port = `/v1/sandboxes/${id}/ports/${PORT}`
  await startPreviewServer(outside, id, PORT)
  const { url } = (await outside.ask('POST', `${port}/link`)).body
  expect(url).toStartWith(`https://public.example/base${port}/tbl_`)
  const prefix = new URL(url).pathname.slice(0, -1)
  const path = prefix.slice('/base'.length)
  const text = await (await open(`${outside.url}${path}/`)).text()
  for (const line of ['host: public.example', 'proto: https', `prefix: ${prefix}`])
    expect(text).toContain(`\r\nx-forwarded-${line}\r\n`)
  const lines = ['HTTP/1.1 302 Found', 'location: /a', 'set-cookie: a=1', 'content-length: 0', '', '']
  const { headers } = await open(`${outside.url}${path}${raw(...lines)}`)
  expect(headers.get('location')).toBe(`${prefix}/a`)
  expect(headers.get('set-cookie')).toBe(`tbc_a=1; Path=/base${port}/; SameSite=Lax`)
})

describe('what a browser may read', () => {
  test('a page of a preview, which has no origin, reads what its link opens', async () => {
    const url = await link()
    for (const origin of ['null', 'https://anywhere.example']) {
      const { headers } = await open(url, { origin })
      expect(headers.get('access-control-allow-origin')).toBe(origin)
      expect(headers.get('access-control-allow-credentials')).toBeNull()
      const preflight = await send('', 'OPTIONS', url, { headers: { origin, 'access-control-request-method': 'PUT' } })
      expect([preflight.status, preflight.headers.get('access-control-allow-origin')]).toEqual([204, origin])
    }
  })

  test('without a link, only the origins of the API', async () => {
    for (const [origin, wanted] of [
      ['null', null],
      ['https://evil.example', null],
      ['https://allowed.example', 'https://allowed.example'],
    ] as const) {
      const { headers } = await app.request('GET', `${home}/`, { headers: { origin } })
      expect(headers.get('access-control-allow-origin')).toBe(wanted)
      const preflight = { origin, 'access-control-request-method': 'PUT' }
      const answer = await send(app.url, 'OPTIONS', `${home}/`, { headers: preflight })
      expect(answer.headers.get('access-control-allow-origin')).toBe(wanted)
    }
  })
})
