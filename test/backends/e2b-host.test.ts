import { afterAll, beforeAll, expect, test } from 'bun:test'
import { e2b } from '../../plugins/e2b/index.ts'
import type { PortHost } from '../../src/plugin-api/index.ts'
import { useApp } from '../support/app.ts'
import { codeOf } from '../support/client.ts'
import { type FakeE2b, openFakeE2b } from '../support/e2b/server.ts'
import { startPreviewServer } from '../support/preview-server.ts'
import { until } from '../support/until.ts'

const PORT = 8400
const TOKEN = 'e2b-traffic-access-token'

let fake: FakeE2b
beforeAll(async () => {
  fake = await openFakeE2b({ hasHosts: true })
})
const onE2b = (connection: () => Record<string, string>) =>
  useApp(['--backend', 'e2b'], {}, () => [e2b({ connection: connection(), template: 'base', idleMs: 3_600_000 })])
const app = onE2b(() => fake.environment)
const byDomain = onE2b(() => ({ E2B_API_KEY: fake.key, E2B_API_URL: fake.apiUrl, E2B_DOMAIN: 'e2b.test' }))
afterAll(() => fake.close())

let sandbox: string
beforeAll(async () => {
  sandbox = await app.sandbox()
  await startPreviewServer(app, sandbox, PORT)
})

const link = (id = sandbox, port: number | string = PORT, options = {}, of = app) =>
  of.ask('POST', `/v1/sandboxes/${id}/ports/${port}/link`, undefined, options)
const boxOf = async (id: string, of = app) => {
  const { environmentId } = of.beside(db =>
    db.query('select environment_id as environmentId from sandboxes where id = ?').get(id),
  ) as { environmentId: string }
  return [...fake.boxes.values()].find(({ info }) => info.metadata.threadboxEnvironment === environmentId)!
}
/** As from anywhere; names of the fake's domain lead to its front. */
const visit = async ({ url, headers }: PortHost, path = '/hello') => {
  const { host } = new URL(url)
  return await fetch(host.endsWith('.e2b.test') ? fake.sandboxUrl + path : url + path, {
    headers: { host, ...headers },
  })
}

test("a port is reached at E2B's host with the token, and not without it", async () => {
  const { status, body } = await link()
  expect([status, Object.keys(body).sort()]).toEqual([201, ['expiresAt', 'host', 'url']])
  const { id, trafficToken } = await boxOf(sandbox)
  const place = { 'e2b-sandbox-id': id, 'e2b-sandbox-port': String(PORT) }
  expect(body.host).toEqual({ url: fake.sandboxUrl, headers: { ...place, [TOKEN]: trafficToken } })
  const answer = await visit(body.host)
  expect([answer.status, (await answer.text()).split('\r\n')[0]]).toEqual([200, 'GET /hello HTTP/1.1'])
  for (const headers of [place, { ...place, [TOKEN]: 'wrong' }]) {
    expect((await visit({ url: fake.sandboxUrl, headers })).status).toBe(403)
  }
  expect(app.log.join('\n')).not.toContain(trafficToken)
})

test('by a domain, each port has a host of its own', async () => {
  const id = await byDomain.sandbox()
  const { body } = await link(id, PORT, {}, byDomain)
  const box = await boxOf(id, byDomain)
  const url = `https://${PORT}-${box.id}.e2b.test`
  expect(body.host).toEqual({ url, headers: { [TOKEN]: box.trafficToken } })
  await box.environment.files.write('/home/user/index.html', Buffer.from('by host'))
  await box.environment.spawn({ command: `python3 -m http.server ${PORT} --bind 127.0.0.1 -d /home/user` })
  await until(async () => (await visit(body.host, '/')).status !== 502)
  expect(await (await visit(body.host, '/')).text()).toBe('by host')
  expect((await visit({ url, headers: {} }, '/')).status).toBe(403)
})

test('a sandbox that is paused is resumed, and its token is the same', async () => {
  const before = (await link()).body.host
  const box = await boxOf(sandbox)
  await box.pause(true)
  expect((await visit(before)).status).toBe(502)
  expect((await link()).body.host).toEqual(before)
  expect((await visit(before)).status).toBe(200)
})

test('a token of a browser gets the link alone, and E2B is not asked: regression', async () => {
  for (const scope of [{}, { agents: ['echo'] }]) {
    const { token: key } = (await app.ask('POST', '/v1/tokens', scope)).body
    fake.asked.length = 0
    const { status, body } = await link(sandbox, PORT, { key })
    expect([status, Object.keys(body).sort(), fake.asked]).toEqual([201, ['expiresAt', 'url'], []])
  }
})

test.each(['0', '65536', '08', '1e3', 'x'])('the port %s is none', async port => {
  expect(codeOf(await link(sandbox, port))).toBe('400 invalid_request')
})

test('of a sandbox that is gone there is none', async () => {
  expect(codeOf(await link(sandbox, PORT, { key: app.foreignKey }))).toBe('404 sandbox_not_found')
  const lost = await app.sandbox()
  await (await boxOf(lost)).kill()
  expect(codeOf(await link(lost))).toBe('503 sandbox_unavailable')
  expect((await app.ask('DELETE', `/v1/sandboxes/${lost}`)).status).toBe(204)
  expect(codeOf(await link(lost))).toBe('404 sandbox_not_found')
})
