import { beforeAll, describe, expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'
import { chat, contents, say, startChat } from '../support/chat.ts'
import { codeOf } from '../support/client.ts'
import { readChunks, textIn } from '../support/sse.ts'
import { until } from '../support/until.ts'

const app = useApp()
let sandboxId = ''
beforeAll(async () => {
  sandboxId = await app.sandbox()
})

let count = 0
/** A client's own name for a chat, never used before. */
const freshName = () => `chat-${++count}`

const placeOf = async (fields: object, key = app.key, agent = 'echo') => {
  const body = { messages: [say('hi')], ...fields }
  const response = await app.request('POST', `/v1/chat/${agent}`, { body, key })
  if (response.status !== 200) throw new Error(`${response.status} ${await response.text()}`)
  const [sandbox, thread] = ['sandbox', 'thread'].map(name => response.headers.get(`x-${name}-id`)!)
  await readChunks(response)
  return { sandboxId: sandbox!, threadId: thread! }
}

const stream = (name: string, query = '', key = app.key) =>
  app.request('GET', `/v1/chat/echo/${encodeURIComponent(name)}/stream${query}`, { key })
const stop = async (name: string, query = '', key = app.key) =>
  (await app.ask('DELETE', `/v1/chat/echo/${name}/stream${query}`, undefined, { key })).body
const tokenFor = async (scope: object): Promise<string> => (await app.ask('POST', '/v1/tokens', scope)).body.token

describe('a chat with an id', () => {
  test('goes on in the sandbox and thread that its first message made', async () => {
    const id = freshName()
    const first = await placeOf({ id, messages: [say('one')] })
    const made = app.environmentIds.length
    expect(await placeOf({ id, messages: [say('one', 'x'), say('two')] })).toEqual(first)
    expect(await placeOf({ id, messages: [say('three')] })).toEqual(first)
    expect(app.environmentIds).toHaveLength(made)
    expect((await contents(app, first)).filter(said => said.startsWith('user'))).toContain('user: three')
  })

  test('goes on in its thread of a sandbox that is named', async () => {
    const id = freshName()
    const first = await placeOf({ id, sandboxId })
    expect(first.sandboxId).toBe(sandboxId)
    expect(await placeOf({ id, sandboxId })).toEqual(first)
    const other = await placeOf({ id, sandboxId: await app.sandbox() })
    expect([other.sandboxId === sandboxId, other.threadId === first.threadId]).toEqual([false, false])
    expect((await placeOf({ id })).sandboxId).not.toBe(sandboxId)
    expect(await placeOf({ id, sandboxId })).toEqual(first)
  })

  test('goes on when the client names the sandbox that was made for it', async () => {
    const id = freshName()
    const first = await placeOf({ id })
    expect(await placeOf({ id, sandboxId: first.sandboxId })).toEqual(first)
    expect(await placeOf({ id })).toEqual(first)
  })

  test('that is a sandbox’s is in this sandbox, by either of its ids', async () => {
    const { body } = await app.ask('POST', '/v1/sandboxes', { agent: 'echo' })
    const first = await placeOf({ id: body.id })
    expect(first.sandboxId).toBe(body.id)
    expect(await placeOf({ id: body.id })).toEqual(first)
    expect(await placeOf({ id: body.id, sandboxId: body.id })).toEqual(first)
    expect((await placeOf({ id: body.sandboxId })).sandboxId).toBe(body.id)
  })

  test('that is a thread’s is in this thread', async () => {
    const first = await placeOf({ sandboxId })
    expect(await placeOf({ id: first.threadId })).toEqual(first)
    expect(await placeOf({ id: first.threadId, sandboxId })).toEqual(first)
  })

  test('is where an explicit thread is, and is found there', async () => {
    const id = freshName()
    const own = await placeOf({ id })
    const explicit = await placeOf({ sandboxId })
    expect(await placeOf({ id, ...explicit })).toEqual(explicit)
    expect(await placeOf({ id })).toEqual(own)
    expect(await placeOf({ id, sandboxId })).toEqual(explicit)
  })

  test.each([['echo'], ['of-another-agent']])('is another one for another agent: %s', async agent => {
    app.agent('of-another-agent')
    const places = [await placeOf({ id: 'shared' }), await placeOf({ id: 'shared' }, app.key, agent)]
    expect(new Set(places.map(place => place.threadId)).size).toBe(agent === 'echo' ? 1 : 2)
  })

  test.each([[undefined], [null], [''], ['sandbox-echo']])(
    'of %p names nothing: each message makes what the contract says',
    async id => {
      const [first, second] = [await placeOf({ id }), await placeOf({ id })]
      expect(first.sandboxId).not.toBe(second.sandboxId)
      const [third, fourth] = [await placeOf({ id, sandboxId }), await placeOf({ id, sandboxId })]
      expect([third.sandboxId, fourth.sandboxId]).toEqual([sandboxId, sandboxId])
      expect(third.threadId).not.toBe(fourth.threadId)
      expect(await placeOf({ id, ...third })).toEqual(third)
    },
  )

  test('still needs a sandbox for a thread, and one that is there', async () => {
    const post = async (fields: object) =>
      codeOf(await app.ask('POST', '/v1/chat/echo', { id: freshName(), messages: [say('a')], ...fields }))
    expect(await post({ threadId: 'thr_x' })).toBe('400 invalid_request')
    expect(await post({ sandboxId: 'sbx_none' })).toBe('404 sandbox_not_found')
    expect(await post({ sandboxId, threadId: 'thr_none' })).toBe('404 thread_not_found')
    for (const id of [1, {}, [], 'x'.repeat(201)]) expect(await post({ id })).toBe('400 invalid_request')
  })

  test('makes one sandbox for messages that come at once', async () => {
    const id = freshName()
    const made = app.environmentIds.length
    const body = { id, messages: [say('/slow 60', 'm1')] }
    const answers = await Promise.all(Array.from({ length: 5 }, () => app.request('POST', '/v1/chat/echo', { body })))
    expect(app.environmentIds.length - made).toBe(1)
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409, 409])
    const said = await Promise.all(answers.map(answer => answer.text()))
    expect(said.filter(text => text.includes('run_active'))).toHaveLength(4)
  })

  test('tries again when the first message was given up while the sandbox was made', async () => {
    app.agent('slow-start', { setup: ['sleep 600'] })
    const body = { id: freshName(), messages: [say('a')] }
    const made = app.environmentIds.length
    const left = new AbortController()
    const first = app.request('POST', '/v1/chat/slow-start', { body, signal: left.signal }).catch(() => 'gone')
    await until(() => app.environmentIds.length > made)
    const second = placeOf(body, app.key, 'slow-start')
    app.agent('slow-start')
    left.abort()
    expect(await first).toBe('gone')
    const place = await second
    expect(await placeOf(body, app.key, 'slow-start')).toEqual(place)
  })

  test.each([['sandbox'], ['thread']])('begins anew when its %s is deleted', async what => {
    const id = freshName()
    const first = await placeOf({ id })
    const path = `/v1/sandboxes/${first.sandboxId}`
    await app.ask('DELETE', what === 'sandbox' ? path : `${path}/threads/${first.threadId}`)
    expect((await stream(id)).status).toBe(204)
    const second = await placeOf({ id, messages: [say('one'), say('two')] })
    expect(second.threadId).not.toBe(first.threadId)
    expect(await placeOf({ id })).toEqual(second)
    expect(app.beside(db => db.query('select * from conversations where name = ?').all(id))).toHaveLength(1)
  })
})

describe('its stream', () => {
  test('is found by its name, and is 204 when idle, unknown or not begun', async () => {
    const id = freshName()
    expect((await stream(id)).status).toBe(204)
    const { response, runId, ...place } = await startChat(app, '/slow 60', { id })
    const resumed = await stream(id)
    expect([resumed.status, resumed.headers.get('x-run-id')]).toEqual([200, runId])
    for (const name of [place.threadId, place.sandboxId]) {
      const other = await stream(name)
      expect(other.headers.get('x-run-id')).toBe(runId)
      await other.body?.cancel()
    }
    expect(textIn(await readChunks(resumed))).toEndWith(' 59 60 ')
    await response.text()
    expect((await stream(id)).status).toBe(204)
  })

  test('is never that of another thread of the sandbox', async () => {
    const [a, b] = [freshName(), freshName()]
    const placeOfB = await placeOf({ id: b, sandboxId })
    const { response, ...placeOfA } = await startChat(app, '/slow 1000', { id: a, sandboxId })
    const statuses = async (names: [string, string?][]) =>
      Promise.all(
        names.map(async ([name, query]) => {
          const { status, body } = await stream(name, query)
          await body?.cancel()
          return status
        }),
      )
    expect(
      await statuses([
        [b],
        [placeOfB.threadId],
        [sandboxId, `?threadId=${b}`],
        [sandboxId, `?threadId=${placeOfB.threadId}`],
      ]),
    ).toEqual([204, 204, 204, 204])
    expect(
      await statuses([
        [a],
        [placeOfA.threadId],
        [sandboxId, `?threadId=${a}`],
        [sandboxId, `?threadId=${placeOfA.threadId}`],
        ['sandbox-echo', `?threadId=${placeOfA.threadId}`],
        [sandboxId],
        [a, `?sandboxId=${sandboxId}`],
      ]),
    ).toEqual([200, 200, 200, 200, 200, 200, 200])
    expect(await stop(b)).toEqual({ status: 'idle', runs: [] })
    expect(await stop(a)).toMatchObject({ status: 'cancelled', runs: [{ threadId: placeOfA.threadId }] })
    await response.text()
  })

  test('of a name in two sandboxes is that of the sandbox that is named, else of the last one used', async () => {
    const id = freshName()
    const other = await app.sandbox()
    const first = await startChat(app, '/slow 1000', { id, sandboxId })
    const second = await startChat(app, '/slow 1000', { id, sandboxId: other })
    const runOf = async (query = '') => {
      const { headers, body } = await stream(id, query)
      await body?.cancel()
      return headers.get('x-run-id')
    }
    expect(await runOf()).toBe(second.runId)
    expect(await runOf(`?sandboxId=${sandboxId}`)).toBe(first.runId)
    expect(await runOf(`?sandboxId=${other}`)).toBe(second.runId)
    expect(await runOf('?sandboxId=sbx_none')).toBeNull()
    for (const [sandbox, run] of [
      [sandboxId, first],
      [other, second],
    ] as const) {
      expect((await stop(id, `?sandboxId=${sandbox}`)).runs).toMatchObject([{ runId: run.runId }])
      await run.response.text()
    }
  })

  test('of a chat that is named by its sandbox is its own, before others there', async () => {
    const sandbox = await app.sandbox()
    const own = await startChat(app, '/slow 1000', { id: sandbox })
    const younger = await startChat(app, '/slow 1000', { sandboxId: sandbox })
    const resumed = await stream(sandbox)
    expect(resumed.headers.get('x-run-id')).toBe(own.runId)
    await resumed.body?.cancel()
    expect((await stop(sandbox)).runs).toHaveLength(2)
    await Promise.all([own.response.text(), younger.response.text()])
  })

  test('that nobody knows cannot be cancelled: 404', async () => {
    const answer = await app.ask('DELETE', `/v1/chat/echo/${freshName()}/stream`)
    expect(codeOf(answer)).toBe('404 sandbox_not_found')
  })
})

describe('regression: an id is never that of another', () => {
  const names = ['ann', 'bob', undefined] as const

  test('end user, by token', async () => {
    const id = freshName()
    const keys = await Promise.all(names.map(userId => tokenFor(userId === undefined ? {} : { userId })))
    const places = []
    for (const key of keys) places.push(await placeOf({ id }, key))
    expect(new Set(places.map(place => place.sandboxId)).size).toBe(3)
    for (const [n, key] of keys.entries()) expect(await placeOf({ id }, key)).toEqual(places[n]!)
    const body = { id, messages: [say('/slow 1000')] }
    const running = await app.request('POST', '/v1/chat/echo', { key: keys[0]!, body })
    for (const key of keys.slice(1)) {
      expect((await stream(id, '', key)).status).toBe(204)
      expect(await stop(id, '', key)).toEqual({ status: 'idle', runs: [] })
    }
    expect((await stop(id, '', keys[0]!)).status).toBe('cancelled')
    await running.text()
  })

  test('end user, by a key that acts for them', async () => {
    const id = freshName()
    const ann = await placeOf({ id, externalUserId: 'ann' })
    const bob = await placeOf({ id, externalUserId: 'bob' })
    expect(ann.sandboxId).not.toBe(bob.sandboxId)
    expect((await placeOf({ id })).sandboxId).not.toBeOneOf([ann.sandboxId, bob.sandboxId])
    expect(await placeOf({ id }, await tokenFor({ userId: 'ann' }))).toEqual(ann)
    const running = await startChat(app, '/slow 1000', { id, externalUserId: 'ann' })
    expect((await stream(id)).status).toBe(204)
    expect((await stream(id, '?externalUserId=bob')).status).toBe(204)
    expect((await stream(ann.threadId, '?externalUserId=bob')).status).toBe(204)
    expect((await stream(ann.sandboxId, '?externalUserId=bob')).status).toBe(204)
    const resumed = await stream(id, '?externalUserId=ann')
    expect(resumed.headers.get('x-run-id')).toBe(running.runId)
    await resumed.body?.cancel()
    expect((await stop(id, '?externalUserId=ann')).status).toBe('cancelled')
    await running.response.text()
  })

  test('end user’s or team’s sandbox or thread', async () => {
    const ann = await tokenFor({ userId: 'ann' })
    const ofBob = await placeOf({ externalUserId: 'bob' })
    const ofTeam = await placeOf({ sandboxId })
    const foreign = app.foreignKey
    for (const { sandboxId, threadId } of [ofBob, ofTeam]) {
      for (const id of [sandboxId, threadId]) {
        expect((await placeOf({ id }, ann)).sandboxId).not.toBe(sandboxId)
        expect((await placeOf({ id, externalUserId: 'eve' })).sandboxId).not.toBe(sandboxId)
        expect((await placeOf({ id }, foreign)).sandboxId).not.toBe(sandboxId)
      }
    }
    expect(await contents(app, ofBob)).toHaveLength(2)
    expect(await contents(app, ofTeam)).toHaveLength(2)
  })

  test('team’s chat', async () => {
    const id = freshName()
    const { response, ...place } = await startChat(app, '/slow 1000', { id })
    expect((await stream(id, '', app.foreignKey)).status).toBe(204)
    expect(codeOf(await app.ask('DELETE', `/v1/chat/echo/${id}/stream`, undefined, { key: app.foreignKey }))).toBe(
      '404 sandbox_not_found',
    )
    expect((await placeOf({ id }, app.foreignKey)).sandboxId).not.toBe(place.sandboxId)
    await stop(id)
    await response.text()
  })

  test('user’s thread that a key has given the name', async () => {
    const id = freshName()
    const ofTeam = await placeOf({ sandboxId })
    await placeOf({ id, ...ofTeam, externalUserId: 'ann' })
    const ann = await tokenFor({ userId: 'ann' })
    expect((await placeOf({ id }, ann)).threadId).not.toBe(ofTeam.threadId)
    expect((await stream(id, `?sandboxId=${sandboxId}`, ann)).status).toBe(204)
  })

  test('token’s agent', async () => {
    const other = await placeOf({ id: 'for-agents' })
    app.agent('mine')
    const key = await tokenFor({ agents: ['mine'] })
    const post = (id: string) => app.ask('POST', '/v1/chat/mine', { id, messages: [say('a')] }, { key })
    expect(codeOf(await post(other.sandboxId))).toBe('403 forbidden')
    expect(codeOf(await post(other.threadId))).toBe('403 forbidden')
    expect((await placeOf({ id: 'for-agents' }, key, 'mine')).sandboxId).not.toBe(other.sandboxId)
  })
})

test('a thread in a named sandbox goes on for an end user whose sandbox it is not', async () => {
  const id = freshName()
  const first = await placeOf({ id, sandboxId, externalUserId: 'ann' })
  expect(await placeOf({ id, sandboxId, externalUserId: 'ann' })).toEqual(first)
  expect((await placeOf({ id, sandboxId, externalUserId: 'bob' })).threadId).not.toBe(first.threadId)
  await until(() => app.runtime.runs.active(sandboxId).length === 0)
})

test('a background chat has its name too', async () => {
  const id = freshName()
  const { body } = await app.ask('POST', '/v1/chat/echo', { id, mode: 'background', messages: [say('/slow 1000')] })
  const resumed = await stream(id)
  expect(resumed.headers.get('x-thread-id')).toBe(body.threadId)
  await resumed.body?.cancel()
  expect((await stop(id)).status).toBe('cancelled')
  expect((await chat(app, 'next', { id })).threadId).toBe(body.threadId)
})
