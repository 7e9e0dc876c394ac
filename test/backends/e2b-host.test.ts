import { afterAll, beforeAll, expect, test } from 'bun:test'
import { Sandbox } from 'e2b'
import { e2b } from '../../plugins/e2b/index.ts'
import type { PortHost } from '../../src/plugin-api/index.ts'
import { useApp } from '../support/app.ts'
import { codeOf } from '../support/client.ts'
import { startPreviewServer } from '../support/preview-server.ts'
import { openThreadboxAsE2b, type ThreadboxAsE2b } from '../support/threadbox-as-e2b.ts'
import { until } from '../support/until.ts'

const PORT = 8400
const TOKEN = 'e2b-traffic-access-token'

let outer: ThreadboxAsE2b
beforeAll(async () => {
  outer = await openThreadboxAsE2b({ domain: 'e2b.test' })
})
const onE2b = (connection: () => Record<string, string>) =>
  useApp(['--backend', 'e2b'], {}, () => [e2b({ connection: connection(), template: 'base', idleMs: 3_600_000 })])
const app = onE2b(() => outer.variables)
const byDomain = onE2b(() => ({ E2B_API_KEY: outer.key, E2B_API_URL: outer.proxy.url, E2B_DOMAIN: 'e2b.test' }))
afterAll(() => outer.close())

let sandbox: string
beforeAll(async () => {
  sandbox = await app.sandbox()
  await startPreviewServer(app, sandbox, PORT)
})

const link = (id = sandbox, port: number | string = PORT, options = {}, of = app) =>
  of.ask('POST', `/v1/sandboxes/${id}/ports/${port}/link`, undefined, options)
/** What is at E2B, which this resumes, as its own clients see it. */
const atE2b = async (id: string, of = app) => {
  const { environmentId } = of.beside(db =>
    db.query('select environment_id as environmentId from sandboxes where id = ?').get(id),
  ) as { environmentId: string }
  return await Sandbox.connect(outer.idOf(environmentId), outer.options)
}
/** As from anywhere; names below E2B's domain lead to it. */
const visit = async ({ url, headers }: PortHost, path = '/hello') => {
  const { host } = new URL(url)
  return await fetch(host.endsWith('.e2b.test') ? outer.proxy.url + path : url + path, {
    headers: { host, ...headers },
  })
}

test("a port is reached at E2B's host with the token, and not without it", async () => {
  const { status, body } = await link()
  expect([status, Object.keys(body).sort()]).toEqual([201, ['expiresAt', 'host', 'url']])
  const { sandboxId, trafficAccessToken } = await atE2b(sandbox)
  const place = { 'e2b-sandbox-id': sandboxId, 'e2b-sandbox-port': String(PORT) }
  expect(body.host).toEqual({ url: outer.proxy.url, headers: { ...place, [TOKEN]: trafficAccessToken } })
  const answer = await visit(body.host)
  expect([answer.status, (await answer.text()).split('\r\n')[0]]).toEqual([200, 'GET /hello HTTP/1.1'])
  for (const headers of [place, { ...place, [TOKEN]: 'wrong' }]) {
    expect((await visit({ url: outer.proxy.url, headers })).status).toBe(403)
  }
  expect(app.log.join('\n')).not.toContain(trafficAccessToken)
})

test('by a domain, each port has a host of its own', async () => {
  const id = await byDomain.sandbox()
  const { body } = await link(id, PORT, {}, byDomain)
  const box = await atE2b(id, byDomain)
  const url = `https://${PORT}-${box.sandboxId}.e2b.test`
  expect(body.host).toEqual({ url, headers: { [TOKEN]: box.trafficAccessToken } })
  await box.files.write('/home/user/index.html', 'by host')
  await box.commands.run(`python3 -m http.server ${PORT} --bind 127.0.0.1 -d /home/user`, { background: true })
  await until(async () => (await visit(body.host, '/')).status !== 502)
  expect(await (await visit(body.host, '/')).text()).toBe('by host')
  expect((await visit({ url, headers: {} }, '/')).status).toBe(403)
})

test('a sandbox that is paused is resumed, and its token is the same', async () => {
  const before = (await link()).body.host
  await (await atE2b(sandbox)).pause()
  expect((await visit(before)).status).toBe(502)
  expect((await link()).body.host).toEqual(before)
  // Its processes have ended.
  await startPreviewServer(app, sandbox, PORT)
  expect((await visit(before)).status).toBe(200)
})

test('a token of a browser gets the link alone, and E2B is not asked: regression', async () => {
  for (const scope of [{}, { agents: ['echo'] }]) {
    const { token: key } = (await app.ask('POST', '/v1/tokens', scope)).body
    outer.proxy.asked.length = 0
    const { status, body } = await link(sandbox, PORT, { key })
    expect([status, Object.keys(body).sort(), outer.proxy.asked]).toEqual([201, ['expiresAt', 'url'], []])
  }
})

test.each(['0', '65536', '08', '1e3', 'x'])('the port %s is none', async port => {
  expect(codeOf(await link(sandbox, port))).toBe('400 invalid_request')
})

test('of a sandbox that is gone there is none', async () => {
  expect(codeOf(await link(sandbox, PORT, { key: app.foreignKey }))).toBe('404 sandbox_not_found')
  const lost = await app.sandbox()
  await (await atE2b(lost)).kill()
  expect(codeOf(await link(lost))).toBe('503 sandbox_unavailable')
  expect((await app.ask('DELETE', `/v1/sandboxes/${lost}`)).status).toBe(204)
  expect(codeOf(await link(lost))).toBe('404 sandbox_not_found')
})
