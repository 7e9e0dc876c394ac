import { expect, test } from 'bun:test'
import { createKey } from '../../src/core/access/keys.ts'
import { formatLimits, keySubjects, parseLimits } from '../../src/core/limits/parse.ts'
import { revokeKey, saveKeyLimits } from '../../src/db/keys.ts'
import type { Engine } from '../../src/plugin-api/index.ts'
import { useApp } from '../support/app.ts'
import { codeOf } from '../support/client.ts'
import { until } from '../support/until.ts'

/** An engine that works until it is told to end, or to fail. */
const ends: ((error?: Error) => void)[] = []
const slow: Engine = {
  name: 'slow',
  async *run(_turn, { signal }) {
    yield { type: 'text', id: 'a', delta: 'a' }
    await new Promise<void>((resolve, reject) => {
      ends.push(error => (error ? reject(error) : resolve()))
      signal.addEventListener('abort', () => resolve())
    })
    return { status: signal.aborted ? 'cancelled' : 'completed' }
  },
}

const flags = ['--trusted-proxies', '127.0.0.1', '--limit', 'address.failures=2/h', '--limit', 'address.streams=3']
const app = useApp(flags, {}, () => [{ name: 'slow', engine: () => slow }])
function keyWith(...limits: string[]): { key: string; id: string } {
  const own = formatLimits(parseLimits(limits, keySubjects))
  const { key, row } = createKey(app.runtime.db, { team: 'default', name: 'limited', limits: own })
  return { key, id: row.id }
}

const list = (key: string, headers: Record<string, string> = {}) =>
  app.ask('GET', '/v1/sandboxes', undefined, { key, headers })
const at = (address: string) => ({ 'x-forwarded-for': address })

test('requests above a limit are refused in the form of every error, with what to wait for', async () => {
  const { key } = keyWith('requests=2/h')
  for (let count = 0; count < 2; count++) expect((await list(key)).status).toBe(200)
  const refused = await list(key)
  expect(refused.status).toBe(429)
  const headers = Object.fromEntries(refused.headers)
  const seconds = headers['retry-after'] ?? ''
  expect(Number(seconds)).toBeWithin(1700, 1801)
  const message = `This API key may send 2/h requests; try again in ${seconds} s.`
  expect(refused.body).toEqual({ error: { code: 'rate_limit_exceeded', message, limit: 'key.requests' }, message })
  expect(headers).toMatchObject({
    'ratelimit-policy': '"key.requests";q=2;w=3600',
    ratelimit: `"key.requests";r=0;t=${seconds}`,
    'ratelimit-limit': '2',
    'ratelimit-remaining': '0',
    'ratelimit-reset': seconds,
  })
  // Another key is not concerned.
  expect((await list(app.key)).status).toBe(200)
})

test('a changed limit holds at the next request', async () => {
  const { key, id } = keyWith('requests=1/h')
  const change = (limits: Record<string, string>) => app.beside(db => saveKeyLimits(db, id, limits))
  expect((await list(key)).status).toBe(200)
  expect((await list(key)).status).toBe(429)
  change({ 'key.requests': '0' })
  for (let count = 0; count < 5; count++) expect((await list(key)).status).toBe(200)
  change({ 'key.requests': '1/h' })
  expect((await list(key)).status).toBe(429)
  change({})
  expect((await list(key)).status).toBe(200)
})

test('a token, an end user and an address have limits of their own', async () => {
  const { key } = keyWith('token.requests=1/h', 'user.requests=2/h')
  const token = async (scope: object) => (await app.ask('POST', '/v1/tokens', scope, { key })).body.token
  const plain = await token({})
  const [ann, anns, annsThird] = [
    await token({ userId: 'ann' }),
    await token({ userId: 'ann', approve: true }),
    await token({ userId: 'ann', agent: 'echo' }),
  ]
  const bob = await token({ userId: 'bob' })
  expect((await list(plain)).status).toBe(200)
  expect((await list(plain)).body.error?.limit).toBe('token.requests')
  expect((await list(ann)).status).toBe(200)
  expect((await list(anns)).status).toBe(200)
  expect((await list(annsThird)).body.error?.limit).toBe('user.requests')
  expect((await list(bob)).status).toBe(200)
})

test('a command holds its place until it is over, and gives it back to whoever is next, also when its client is gone', async () => {
  const { key } = keyWith('execs=1')
  const id = await app.sandbox()
  const exec = (command: string, signal?: AbortSignal) =>
    app.request('POST', `/v1/sandboxes/${id}/exec`, { key, body: { command }, ...(signal && { signal }) })
  const isFree = async () => (await exec('true')).status === 200
  const leaving = new AbortController()
  const left = exec('sleep 300', leaving.signal).catch(() => {})
  await until(async () => !(await isFree()))
  const refused = await app.ask('POST', `/v1/sandboxes/${id}/exec`, { command: 'true' }, { key })
  expect(refused.body.error).toMatchObject({ code: 'rate_limit_exceeded', limit: 'key.execs' })
  expect(refused.headers.get('ratelimit-policy')).toBe('"key.execs";q=1')
  leaving.abort()
  await left
  await until(isFree)
  expect(codeOf(await app.ask('POST', `/v1/sandboxes/${id}/exec`, { command: 'sleep 9', timeoutMs: 1 }, { key }))).toBe(
    '408 command_timeout',
  )
  expect(await isFree()).toBe(true)
  expect((await app.ask('POST', '/v1/sandboxes/none/exec', { command: 'true' }, { key })).status).toBe(404)
  expect((await app.ask('POST', `/v1/sandboxes/${id}/exec`, { command: 5 }, { key })).status).toBe(400)
  expect(await isFree()).toBe(true)
})

test('streams and WebSockets are refused before they begin, and give their places back when they end', async () => {
  const { key } = keyWith('streams=2')
  const id = await app.sandbox()
  const started = await app.ask('POST', `/v1/sandboxes/${id}/processes`, { command: 'cat', pty: true })
  const path = `/v1/sandboxes/${id}/processes/${started.body.pid}`
  const events = (signal: AbortSignal) => app.request('GET', '/v1/events', { key, signal })
  const socket = () =>
    new WebSocket(`${app.url.replace('http', 'ws')}${path}/terminal`, {
      headers: { authorization: `Bearer ${key}` },
    } as never)
  const isFree = async () => {
    const probe = new AbortController()
    const { status } = await events(probe.signal)
    probe.abort()
    return status === 200
  }
  const stop = new AbortController()
  // A response that nobody holds is closed when it is collected.
  const held = await events(stop.signal)
  expect(held.status).toBe(200)
  const terminal = socket()
  await new Promise(resolve => terminal.addEventListener('open', resolve))
  expect((await app.ask('GET', `${path}/output`, undefined, { key })).body.error?.limit).toBe('key.streams')
  const upgrade = {
    connection: 'upgrade',
    upgrade: 'websocket',
    'sec-websocket-version': '13',
    'sec-websocket-key': 'x',
  }
  expect((await app.request('GET', `${path}/terminal`, { key, headers: upgrade })).status).toBe(429)
  const made = await app.ask(
    'POST',
    '/v1/sandboxes',
    { agent: 'echo' },
    { key, headers: { accept: 'text/event-stream' } },
  )
  expect(codeOf(made)).toBe('429 rate_limit_exceeded')
  terminal.close()
  await until(isFree)
  expect(held.bodyUsed).toBe(false)
  stop.abort()
})

test('streams of a revoked key give their places back', async () => {
  const { key, id } = keyWith()
  const headers = at('203.0.113.9')
  const events = (eventsKey: string) => app.request('GET', '/v1/events', { key: eventsKey, headers })
  const held = await Promise.all([events(key), events(key), events(key)])
  expect(held.map(({ status }) => status)).toEqual([200, 200, 200])
  expect((await events(app.key)).status).toBe(429)
  app.beside(db => revokeKey(db, id))
  await Promise.all(held.map(each => each.text()))
  const again = await events(app.key)
  expect(again.status).toBe(200)
  await again.body?.cancel()
})

const chat = (key: string, fields: object = {}) =>
  app.ask(
    'POST',
    '/v1/chat/slow',
    { mode: 'background', messages: [{ role: 'user', parts: [{ type: 'text', text: 'a' }] }], ...fields },
    { key },
  )

test('a run holds its place until it has ended: by itself, by a failure of its engine, by a cancel', async () => {
  app.agent('slow', {}, { engine: 'slow' })
  const { key } = keyWith('runs=1')
  const sandboxId = await app.sandbox({ agent: 'slow' })
  for (const end of ['completed', 'failed', 'cancelled'] as const) {
    ends.length = 0
    let first = await chat(key, { sandboxId })
    await until(async () => {
      if (first.status === 429) first = await chat(key, { sandboxId })
      return first.status === 202
    })
    await until(() => ends.length === 1)
    const sandboxes = (await list(app.key)).body.sandboxes.length
    const refused = await chat(key)
    expect(refused.body.error).toMatchObject({ code: 'rate_limit_exceeded', limit: 'key.runs' })
    // Nothing was made for it.
    expect((await list(app.key)).body.sandboxes.length).toBe(sandboxes)
    if (end === 'completed') ends[0]?.()
    if (end === 'failed') ends[0]?.(new Error('the engine is broken'))
    if (end === 'cancelled') await app.ask('DELETE', `/v1/chat/slow/${sandboxId}/stream`, undefined, { key })
  }
  await until(async () => (await chat(key, { sandboxId })).status === 202)
})

test('wrong keys from one address are slowed down and then refused; another address and a known key are not', async () => {
  const wrong = (address: string, index: number) => list(`tbx_wrong-${index}`, at(address))
  expect((await list(app.key, at('203.0.113.1'))).status).toBe(200)
  const answers = await Promise.all(Array.from({ length: 40 }, (_, index) => wrong('203.0.113.1', index)))
  const refused = answers.filter(({ status }) => status === 429)
  expect(answers.filter(({ status }) => status === 401).length).toBeLessThan(10)
  expect(refused.length).toBeGreaterThan(30)
  expect(refused[0]?.body.error).toMatchObject({ code: 'rate_limit_exceeded', limit: 'address.failures' })
  expect(Number(refused.at(-1)?.headers.get('retry-after'))).toBeGreaterThanOrEqual(1)
  expect((await list(app.key, at('203.0.113.1'))).status).toBe(200)
  expect((await list(app.key, at('203.0.113.2'))).status).toBe(200)
  expect((await wrong('203.0.113.2', 0)).status).toBe(401)
  const signIn = (address: string) =>
    app.ask('POST', '/v1/session', { key: 'tbx_wrong' }, { key: null, headers: { ...at(address), origin: app.url } })
  const signIns = await Promise.all(Array.from({ length: 10 }, () => signIn('203.0.113.1')))
  expect(signIns.filter(({ status }) => status === 429).length).toBeGreaterThan(5)
  expect((await signIn('203.0.113.2')).status).toBe(401)
})
