import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createTurns } from '../../src/async/turns.ts'
import { createKey } from '../../src/core/access/keys.ts'
import { outflow } from '../../src/http/outflow.ts'
import { createShares } from '../../src/http/shares.ts'
import { useApp } from '../support/app.ts'
import { codeOf } from '../support/client.ts'
import { until } from '../support/until.ts'

const app = useApp(['--requests-per-key', '4'])
let id = ''
let pid = 0
const abort = new AbortController()
beforeAll(async () => {
  id = await app.sandbox()
  pid = (await app.ask('POST', `/v1/sandboxes/${id}/processes`, { command: 'yes', pty: true })).body.pid
})
afterAll(() => abort.abort())

const list = (key = app.key) => app.ask('GET', '/v1/sandboxes', undefined, { key })

test('a key has so many requests, streams and WebSockets open at once, and no more: regression', async () => {
  // A response that nobody holds is closed when it is collected.
  const held: Response[] = []
  const watch = async () => {
    const response = await app.request('GET', `/v1/sandboxes/${id}/processes/${pid}/output`, { signal: abort.signal })
    held.push(response)
    return response
  }
  const terminal = new WebSocket(`${app.url.replace('http', 'ws')}/v1/sandboxes/${id}/processes/${pid}/terminal`, {
    headers: { authorization: `Bearer ${app.key}` },
  } as never)
  await new Promise(resolve => terminal.addEventListener('open', resolve))
  for (let count = 0; count < 3; count++) expect((await watch()).status).toBe(200)
  const refused = await list()
  expect(codeOf(refused)).toBe('429 rate_limit_exceeded')
  expect(refused.headers.get('retry-after')).toBe('1')
  expect(codeOf(await app.ask('GET', `/v1/sandboxes/${id}/processes/${pid}/output`))).toBe('429 rate_limit_exceeded')

  const other = createKey(app.runtime.db, { team: 'default', name: 'other' }).key
  expect((await list(other)).status).toBe(200)
  terminal.close()
  await until(async () => (await list()).status === 200)
  expect((await watch()).status).toBe(200)
  expect((await list()).status).toBe(429)
  // What ends things has room.
  expect((await app.ask('DELETE', `/v1/sandboxes/${id}/processes/${pid}`)).status).toBe(204)
  abort.abort()
  await until(async () => (await list()).status === 200)
  expect(held.map(({ status }) => status)).toEqual([200, 200, 200, 200])
})

test('an archive that is not read counts as open until it ends: regression', async () => {
  await app.shell(id, 'mkdir /big && head -c 100000000 /dev/zero > /big/zeros')
  const held: Response[] = []
  const stop = new AbortController()
  for (let count = 0; count < 4; count++) {
    const path = `/v1/sandboxes/${id}/files?path=/big&format=tar`
    held.push(await app.request('GET', path, { signal: stop.signal }))
  }
  expect(held.map(({ status }) => status)).toEqual([200, 200, 200, 200])
  expect(codeOf(await list())).toBe('429 rate_limit_exceeded')
  stop.abort()
  await until(async () => (await list()).status === 200)
})

test('what is refused or fails gives its room back', async () => {
  const terminal = await app.ask('POST', `/v1/sandboxes/${id}/processes`, { command: 'cat', pty: true })
  for (let count = 0; count < 10; count++) {
    const plain = await app.ask('GET', `/v1/sandboxes/${id}/processes/${terminal.body.pid}/terminal`)
    expect(codeOf(plain)).toBe('400 invalid_request')
    expect((await app.ask('GET', '/v1/sandboxes/none')).status).toBe(404)
    expect((await app.ask('POST', '/v1/sandboxes', { agent: 5 })).status).toBe(400)
    expect((await app.ask('GET', `/v1/sandboxes/${id}/ports/9/x`)).status).toBe(502)
    expect((await app.ask('GET', `/v1/sandboxes/${id}/processes/9999/terminal`)).status).toBe(404)
  }
  expect((await list()).status).toBe(200)
})

test('keys take turns, and between any two turns the event loop does other things', async () => {
  const turns = createTurns()
  const order: string[] = []
  const go = async (key: string, name: string) => {
    await turns.next(key)
    order.push(name)
  }
  const other = async () => {
    for (let count = 0; count < 3; count++) {
      await new Promise(setImmediate)
      order.push('other')
    }
  }
  await Promise.all([go('a', 'a1'), go('a', 'a2'), go('a', 'a3'), go('b', 'b1'), go('c', 'c1'), other()])
  expect(order.filter(name => name !== 'other')).toEqual(['a1', 'b1', 'c1', 'a2', 'a3'])
  expect(order.indexOf('other')).toBeLessThan(2)
  expect(order.lastIndexOf('other')).toBeGreaterThan(2)
})

test('small work shares a turn, and large work has one to itself', async () => {
  const turns = createTurns()
  await turns.next('a')
  let others = 0
  let isOver = false
  const count = async () => {
    while (!isOver) {
      await new Promise(setImmediate)
      others += 1
    }
  }
  const counting = count()
  for (let piece = 0; piece < 160; piece++) await turns.next('a', 1 / 16)
  const small = others
  for (let piece = 0; piece < 160; piece++) await turns.next('a', 5)
  isOver = true
  await counting
  expect(small).toBeGreaterThan(5)
  expect(small).toBeLessThan(40)
  expect(others - small).toBeGreaterThan(140)
})

const bodyOf = (pieces: number, isEndless = false) => {
  let given = 0
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (given++ < pieces) controller.enqueue(Buffer.from('x'))
      else if (isEndless) await new Promise(() => {})
      else controller.close()
    },
  })
}

test('a stream whose reader takes nothing is told of, one that has nothing to say is not', async () => {
  const watched = (body: ReadableStream<Uint8Array>) => {
    const counts = { stalls: 0, ends: 0 }
    const flow = outflow(body, {
      signal: new AbortController().signal,
      turn: () => Promise.resolve(),
      stalledMs: 10,
      onStalled: () => void counts.stalls++,
      onEnd: () => void counts.ends++,
    })
    return { counts, flow }
  }
  const [unread, silent, read] = [watched(bodyOf(5)), watched(bodyOf(1, true)), watched(bodyOf(5))]
  const [unreadReader, silentReader] = [unread.flow.getReader(), silent.flow.getReader()]
  await silentReader.read()
  const waiting = silentReader.read()
  await unreadReader.read()
  await until(() => unread.counts.stalls > 3)
  await Promise.all([unreadReader.cancel(), silentReader.cancel(), waiting])
  expect(await new Response(read.flow).text()).toBe('xxxxx')
  expect(unread.counts.ends).toBe(1)
  expect(silent.counts).toEqual({ stalls: 0, ends: 1 })
  expect(read.counts.ends).toBe(1)
})

test('of the connections of a key only so many stay open between requests', () => {
  const shares = createShares({ requestsPerKey: 0, connectionsPerKey: 2, keptMs: 60_000 })
  const asked = ['1', '2', '3', '1', '2', '3'].map(connection => shares.keeps('a', connection))
  expect(asked).toEqual([true, true, false, true, true, false])
  expect(shares.keeps('b', '3')).toBe(true)
  const short = createShares({ requestsPerKey: 0, connectionsPerKey: 1, keptMs: 0 })
  expect([short.keeps('a', '1'), short.keeps('a', '2')]).toEqual([true, true])
})
