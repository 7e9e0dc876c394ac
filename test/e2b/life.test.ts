import { afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { Sandbox } from 'e2b'
import { readE2bId } from '../../src/core/e2b/ids.ts'
import { findE2bSandbox, saveE2bSandbox } from '../../src/db/e2b-sandboxes.ts'
import { useApp } from '../support/app.ts'
import { until } from '../support/until.ts'
import { call, type E2bOptions, e2bOptions } from './client.ts'

const app = useApp()
let options: E2bOptions
beforeAll(() => {
  options = e2bOptions(app)
})
afterEach(async () => {
  for (const { sandboxID } of (await call(options, 'GET', '/v2/sandboxes')).body)
    await call(options, 'DELETE', `/sandboxes/${sandboxID}`)
})

const create = async (fields: object = {}, path = '/v2/sandboxes'): Promise<any> => {
  const { status, body } = await call(options, 'POST', path, { templateID: 'base', ...fields })
  expect([status, body.message]).toEqual([201, undefined])
  return body
}
const get = async (id: string) => (await call(options, 'GET', `/sandboxes/${id}`)).body
const secondsLeft = async (id: string) => (Date.parse((await get(id)).endAt) - Date.now()) / 1000

/** As if the time of a sandbox were up at this moment. */
function letTimePass(id: string): void {
  const { db } = app.runtime
  const each = findE2bSandbox(db, readE2bId(id)!)!
  saveE2bSandbox(db, { ...each, endsAt: new Date().toISOString() })
  app.runtime.e2b.wake()
}

describe('a time to live', () => {
  test('is 300 seconds, and 15 in the older form', async () => {
    expect(await secondsLeft((await create()).sandboxID)).toBeWithin(270, 300.1)
    expect(await secondsLeft((await create({}, '/sandboxes')).sandboxID)).toBeWithin(1, 15.1)
  })

  test('is made longer and shorter, and never shorter by connecting and refreshing', async () => {
    const { sandboxID: id } = await create({ timeout: 100 })
    expect((await call(options, 'POST', `/sandboxes/${id}/timeout`, { timeout: 1000 })).status).toBe(204)
    expect(await secondsLeft(id)).toBeWithin(900, 1000.1)
    expect((await call(options, 'POST', `/v2/sandboxes/${id}/connect`)).status).toBe(200)
    expect((await call(options, 'POST', `/sandboxes/${id}/refreshes`, { duration: 10 })).status).toBe(204)
    expect(await secondsLeft(id)).toBeWithin(900, 1000.1)
    await call(options, 'POST', `/sandboxes/${id}/refreshes`, { duration: 2000 })
    expect(await secondsLeft(id)).toBeWithin(1900, 2000.1)
    await call(options, 'POST', `/sandboxes/${id}/timeout`, { timeout: 50 })
    expect(await secondsLeft(id)).toBeWithin(1, 50.1)
  })

  test('ends with the sandbox, and nothing of it is left', async () => {
    const { sandboxID: id } = await create({ timeout: 1 })
    await until(async () => (await call(options, 'GET', `/sandboxes/${id}`)).status === 404)
    expect((await app.ask('GET', `/v1/sandboxes/${readE2bId(id)}`)).status).toBe(404)
    expect((await call(options, 'GET', '/health', undefined, { 'e2b-sandbox-id': id })).status).toBe(502)
  })

  test('that pauses keeps the files, and no environment that runs', async () => {
    const { sandboxID: id } = await create({ autoPause: true })
    const native = readE2bId(id)!
    await app.shell(native, 'echo kept > kept; sleep 1000 > /dev/null 2>&1 &')
    const before = await app.shell(native, 'cat /proc/sys/kernel/random/boot_id kept')
    letTimePass(id)
    await until(async () => (await get(id)).state === 'paused')
    await until(async () => !(await app.ask('GET', `/v1/sandboxes/${native}`)).body.isRunning)
    expect((await call(options, 'GET', '/health', undefined, { 'e2b-sandbox-id': id })).status).toBe(502)
    expect((await call(options, 'POST', `/sandboxes/${id}/timeout`, { timeout: 50 })).status).toBe(404)
    const { status, body } = await call(options, 'POST', `/v2/sandboxes/${id}/connect`)
    expect([status, body.sandboxID]).toEqual([201, id])
    expect(await get(id)).toMatchObject({ state: 'running', lifecycle: { onTimeout: 'pause', autoResume: false } })
    expect(await secondsLeft(id)).toBeWithin(270, 300.1)
    expect(await app.shell(native, 'cat kept; pgrep sleep || echo no sleep')).toBe('kept\nno sleep\n')
    expect(before).toEndWith('kept\n')
  })

  test('is not that of the agent', async () => {
    app.agent('short-lived', { timeoutMs: 1000 })
    const { sandboxID: id } = await create({ templateID: 'short-lived' })
    expect(app.beside(db => db.query('select timeout_ms from sandboxes where id = ?').get(readE2bId(id)!))).toEqual({
      timeout_ms: null,
    })
  })
})

test('a pause is refused to a paused one, and a resume to one that runs', async () => {
  const { sandboxID: id } = await create()
  const ask = async (path: string, body?: object) => {
    const { status, body: said } = await call(options, 'POST', `/sandboxes/${id}/${path}`, body)
    return [status, said?.code]
  }
  expect(await ask('resume', { timeout: 60 })).toEqual([409, 409])
  expect(await ask('pause')).toEqual([204, undefined])
  expect(await ask('pause', { memory: false })).toEqual([409, 409])
  expect(await ask('resume', { timeout: 60, autoPause: true })).toEqual([201, undefined])
  expect((await get(id)).lifecycle).toEqual({ onTimeout: 'pause', autoResume: false })
})

describe('a list', () => {
  test('has pages, newest first, of what is asked for', async () => {
    const [first, second, third] = [
      await create({ metadata: { kind: 'a', name: 'x&y=z ä' } }),
      await create({ metadata: { kind: 'b' } }),
      await create({ metadata: { kind: 'a' }, templateID: 'echo' }),
    ].map(({ sandboxID }) => sandboxID as string)
    await call(options, 'POST', `/sandboxes/${second}/pause`)
    const ids = async (query: string, path = '/v2/sandboxes') => {
      const { body, headers } = await call(options, 'GET', `${path}?${query}`)
      return [body.map((each: any) => each.sandboxID), headers.get('x-next-token')] as [string[], string | null]
    }
    expect(await ids('')).toEqual([[third!, second!, first!], null])
    expect(await ids('', '/sandboxes')).toEqual([[third!, first!], null])
    expect(await ids('order=asc')).toEqual([[first!, second!, third!], null])
    expect(await ids('state=paused')).toEqual([[second!], null])
    expect(await ids('template=echo')).toEqual([[third!], null])
    const inner = new URLSearchParams({ kind: 'a', name: 'x&y=z ä' })
    expect(await ids(new URLSearchParams({ metadata: inner.toString() }).toString())).toEqual([[first!], null])
    const started = (await get(second!)).startedAt
    expect((await ids(`startedAfter=${encodeURIComponent(started)}`))[0]).toEqual([third!, second!])
    const [page, next] = await ids('limit=2')
    expect([page, next]).toEqual([[third!, second!], expect.any(String)])
    expect(await ids(`limit=2&nextToken=${next}`)).toEqual([[first!], null])
    const found = await Sandbox.list({ ...options, query: { metadata: { name: 'x&y=z ä' } } }).nextItems()
    expect(found.map(({ sandboxId }) => sandboxId)).toEqual([first!])
  })

  test('has no sandbox that was made otherwise, which no other route shows either', async () => {
    const native = await app.sandbox()
    expect((await call(options, 'GET', '/v2/sandboxes')).body).toEqual([])
    const wire = native.replaceAll(/[_-]/g, '')
    for (const id of [native, wire]) {
      expect((await call(options, 'GET', `/sandboxes/${id}`)).status).toBe(404)
      expect((await call(options, 'POST', `/v2/sandboxes/${id}/connect`)).status).toBe(404)
      expect((await call(options, 'DELETE', `/sandboxes/${id}`)).status).toBe(404)
    }
  })
})

test('network rules let through what they allow, whatever they deny', async () => {
  const rulesOf = async (id: string) => {
    const { allowOut, denyOut } = (await app.ask('GET', `/v1/sandboxes/${readE2bId(id)}`)).body.network
    return { allowOut, denyOut }
  }
  const { sandboxID: id } = await create({
    allow_internet_access: false,
    network: { allowOut: ['1.1.1.1', '*.x.com'] },
  })
  expect(await rulesOf(id)).toEqual({ allowOut: ['1.1.1.1/32', '*.x.com'], denyOut: [] })
  expect(await get(id)).toMatchObject({
    allowInternetAccess: false,
    network: { allowOut: ['1.1.1.1', '*.x.com'], denyOut: ['0.0.0.0/0'], allowPublicTraffic: true },
  })
  const put = async (body: object) => (await call(options, 'PUT', `/sandboxes/${id}/network`, body)).status
  expect(await put({ denyOut: ['8.8.0.0/30', '9.9.9.9/8'], allowOut: ['8.8.0.1'] })).toBe(204)
  expect(await rulesOf(id)).toEqual({ allowOut: null, denyOut: ['8.8.0.0/32', '8.8.0.2/31', '9.0.0.0/8'] })
  expect(await put({})).toBe(204)
  expect(await rulesOf(id)).toEqual({ allowOut: null, denyOut: [] })
  expect(await put({ denyOut: ['0.0.0.0/0'] })).toBe(204)
  expect(await rulesOf(id)).toEqual({ allowOut: [], denyOut: [] })
  for (const wrong of [
    { denyOut: ['example.com'] },
    { allowOut: ['example.com'] },
    { allowOut: ['999.1.1.1'], denyOut: ['0.0.0.0/0'] },
    { allowOut: ['1.1.1.1/33'] },
    { rules: { 'example.com': [{ transform: { headers: { a: 'b' } } }] } },
    { egressProxy: { address: 'example.com:1080' } },
  ])
    expect([wrong, await put(wrong)]).toEqual([wrong, 400])
})

test('as many network rules as there may be, each within the others, hold nobody else up: regression', async () => {
  const { sandboxID: id } = await create()
  const hex = (index: number) => ((index * 7919) % 65_536).toString(16)
  const allowOut = Array.from({ length: 1000 }, (_, index) => `2001:db8:${hex(index)}:1:${hex(index + 7)}::1`)
  const denyOut = Array.from({ length: 1000 }, (_, index) => `::/${1 + (index % 8)}`)
  const { status, body } = await call(options, 'PUT', `/sandboxes/${id}/network`, { allowOut, denyOut })
  expect([status, body.message]).toEqual([400, 'denyOut: too many parts of it are allowed'])
})

test('a create that wants ports with TLS inside is refused in words, and not taken for one without', async () => {
  const body = { templateID: 'base', network: { httpsPorts: [3000] } }
  const refused = await call(options, 'POST', '/sandboxes', body)
  expect([refused.status, refused.body.message]).toEqual([400, 'network.httpsPorts: this server does not have that'])
  expect((await call(options, 'POST', '/sandboxes', { ...body, network: { httpsPorts: [] } })).status).toBe(201)
})

test('figures are told of the time that is asked for', async () => {
  const { sandboxID: id } = await create()
  await app.shell(readE2bId(id)!, 'true')
  const figures = async (query = '') => (await call(options, 'GET', `/sandboxes/${id}/metrics${query}`)).body
  await until(async () => (await figures()).length > 0)
  const [first] = await figures()
  expect(first).toMatchObject({ cpuCount: 2, memTotal: 2048 * 1024 * 1024, timestampUnix: expect.any(Number) })
  expect(first.memUsed).toBeGreaterThan(0)
  expect(await figures('?end=1')).toEqual([])
  expect((await figures('?start=1')).length).toBeGreaterThan(0)
})

test('snapshots are templates, and forks have a life of their own', async () => {
  const { sandboxID: id } = await create({ metadata: { user: 'anna' }, network: { allowPublicTraffic: false } })
  await app.shell(readE2bId(id)!, 'echo one > file')
  const taken = await call(options, 'POST', `/sandboxes/${id}/snapshots`, { name: 'first' })
  expect([taken.status, taken.body]).toEqual([201, { snapshotID: expect.stringMatching(/^snap_/), names: ['first'] }])
  const { snapshotID } = taken.body
  expect((await call(options, 'GET', `/snapshots?sandboxID=${id}`)).body).toEqual([taken.body])
  await app.shell(readE2bId(id)!, 'echo two > file')
  for (const templateID of [snapshotID, 'first']) {
    const made = await create({ templateID, envVars: { A: 'b' } })
    expect(await app.shell(readE2bId(made.sandboxID)!, 'cat file; echo $A')).toBe('one\nb\n')
  }
  const forked = await call(options, 'POST', `/sandboxes/${id}/fork`, { count: 2, timeout: 60 })
  expect(forked.status).toBe(201)
  const forks = forked.body.map(({ sandbox }: any) => sandbox)
  expect(new Set(forks.map((each: any) => each.envdAccessToken)).size).toBe(2)
  for (const { sandboxID, envdAccessToken, trafficAccessToken } of forks) {
    expect(await get(sandboxID)).toMatchObject({ metadata: { user: 'anna' }, network: { allowPublicTraffic: false } })
    expect(await secondsLeft(sandboxID)).toBeWithin(30, 60.1)
    expect(await app.shell(readE2bId(sandboxID)!, 'cat file')).toBe('two\n')
    expect(trafficAccessToken).not.toBe(envdAccessToken)
  }
  expect((await call(options, 'POST', `/sandboxes/${id}/fork`, { count: 0 })).status).toBe(400)
  expect((await call(options, 'POST', `/sandboxes/sbx${'0'.repeat(32)}/fork`, { count: 1 })).status).toBe(404)
  expect((await call(options, 'DELETE', `/templates/${snapshotID}`)).status).toBe(204)
  expect((await call(options, 'DELETE', `/templates/${snapshotID}`)).status).toBe(404)
})

test('templates are the agents of the team, and aliases say whether one is there', async () => {
  const names = (await call(options, 'GET', '/templates')).body.map((each: any) => each.templateID)
  expect(names).toContain('echo')
  const alias = async (name: string) => (await call(options, 'GET', `/templates/aliases/${name}`)).status
  expect([await alias('echo'), await alias('base'), await alias('none')]).toEqual([200, 200, 404])
})
