import { beforeAll, describe, expect, test } from 'bun:test'
import { createKey } from '../../src/core/access/keys.ts'
import { noteStops } from '../../src/core/sandboxes/note-stops.ts'
import { purgeEvents } from '../../src/db/events.ts'
import { revokeKey } from '../../src/db/keys.ts'
import { useApp } from '../support/app.ts'
import { codeOf } from '../support/client.ts'
import { until } from '../support/until.ts'

const app = useApp()

/** Follows events in the background. `until` resolves with all that came once one of a type is there. */
async function follow(options: { key?: string; headers?: Record<string, string>; query?: string } = {}) {
  const { query = '', ...rest } = options
  const response = await app.request('GET', `/v1/events${query}`, rest)
  expect(response.status).toBe(200)
  const events: any[] = []
  let lastId = ''
  let isOver = false
  let changed = Promise.withResolvers<void>()
  const reader = response.body!.getReader()
  const decoder = new TextDecoder()
  const read = async () => {
    let rest = ''
    for (;;) {
      const { value, done } = await reader.read()
      if (done) break
      rest += decoder.decode(value, { stream: true })
      const blocks = rest.split('\n\n')
      rest = blocks.pop() ?? ''
      for (const block of blocks) {
        const id = /^id: (\d+)$/m.exec(block)?.[1]
        const data = /^data: (.*)$/m.exec(block)?.[1]
        if (id) lastId = id
        if (data) events.push(JSON.parse(data))
      }
      changed.resolve()
      changed = Promise.withResolvers()
    }
    isOver = true
    changed.resolve()
  }
  const reading = read()
  return {
    events,
    get lastId() {
      return lastId
    },
    async until(type: string) {
      while (!events.some(each => each.type === type) && !isOver) await changed.promise
      return events
    },
    ended: () => reading,
    async close() {
      await reader.cancel()
    },
    async started() {
      while (lastId === '') await changed.promise
    },
  }
}

const chat = (sandboxId: string, text = 'hello', key?: string) =>
  app
    .request('POST', '/v1/chat/echo', {
      body: { sandboxId, messages: [{ role: 'user', parts: [{ type: 'text', text }] }] },
      ...(key && { key }),
    })
    .then(response => response.text())

const typesOf = (events: any[]) => events.map(({ type }) => type)

describe('what happens to a sandbox', () => {
  test('comes in its order, with ids and states, and without what was said', async () => {
    const followed = await follow()
    await followed.started()
    const id = await app.sandbox({ envs: { SECRET: 'swordfish' } })
    await chat(id, 'the secret word is swordfish')
    await followed.until('run.ended')
    await app.ask('DELETE', `/v1/sandboxes/${id}`)
    const events = await followed.until('sandbox.deleted')
    await followed.close()
    expect(typesOf(events)).toEqual(expect.arrayContaining(['thread.created', 'run.started', 'thread.changed']))
    expect([typesOf(events)[0], typesOf(events).at(-1)]).toEqual(['sandbox.created', 'sandbox.deleted'])
    expect(typesOf(events).indexOf('run.started')).toBeLessThan(typesOf(events).indexOf('run.ended'))
    expect(events.find(({ type }) => type === 'run.ended')).toMatchObject({
      sandboxId: id,
      agent: 'echo',
      status: 'completed',
      runId: expect.stringMatching(/^run_/),
      threadId: expect.stringMatching(/^thr_/),
      createdAt: expect.stringMatching(/^\d{4}-.*Z$/),
    })
    expect(JSON.stringify(events)).not.toContain('swordfish')
  })

  test('is told when it has stopped, whatever has stopped it', async () => {
    const [one, other] = [await app.sandbox(), await app.sandbox()]
    await app.exec(one, 'true')
    await noteStops(app.runtime)
    const followed = await follow({ query: '?types=sandbox.stopped' })
    await followed.started()
    const { body } = await app.ask('GET', `/v1/sandboxes/${one}`)
    await (await app.runtime.environments.get({ backend: 'nsjail', environmentId: body.sandboxId })).pause?.()
    await noteStops(app.runtime)
    await followed.until('sandbox.stopped')
    await app.ask('POST', `/v1/sandboxes/${other}/stop`)
    await app.ask('DELETE', `/v1/sandboxes/${other}`)
    await noteStops(app.runtime)
    await until(() => followed.events.length === 2)
    await followed.close()
    expect(followed.events.map(({ sandboxId }) => sandboxId)).toEqual([one, other])
  })

  test('comes to a reader that was away, from where it was', async () => {
    const first = await follow()
    await first.started()
    const id = await app.sandbox()
    await first.until('sandbox.created')
    const { lastId } = first
    await first.close()
    await chat(id)
    await app.ask('DELETE', `/v1/sandboxes/${id}`)
    const second = await follow({ headers: { 'last-event-id': lastId } })
    const events = await second.until('sandbox.deleted')
    await second.close()
    expect(typesOf(events)).not.toContain('sandbox.created')
    expect(typesOf(events)).toEqual(expect.arrayContaining(['thread.created', 'run.started', 'run.ended']))
  })

  test('of some types, or of one sandbox, alone', async () => {
    const types = await follow({ query: '?types=sandbox.created,sandbox.deleted' })
    await types.started()
    const [one, other] = [await app.sandbox(), await app.sandbox()]
    const single = await follow({ query: `?sandboxId=${one}` })
    await single.started()
    await chat(other)
    await chat(one)
    await app.ask('DELETE', `/v1/sandboxes/${other}`)
    await app.ask('DELETE', `/v1/sandboxes/${one}`)
    expect(new Set((await single.until('sandbox.deleted')).map(({ sandboxId }) => sandboxId))).toEqual(new Set([one]))
    await types.until('sandbox.deleted')
    expect(new Set(typesOf(types.events))).toEqual(new Set(['sandbox.created', 'sandbox.deleted']))
    await Promise.all([types.close(), single.close()])
  })

  test('that nobody kept is said to be lost', async () => {
    app.beside(db => purgeEvents(db, { before: '9999', most: 0 }))
    for (const position of ['1', '999999999']) {
      const followed = await follow({ headers: { 'last-event-id': position } })
      await followed.until('events.lost')
      expect(typesOf(followed.events)).toEqual(['events.lost'])
      await followed.close()
    }
    expect(codeOf(await app.ask('GET', '/v1/events', undefined, { headers: { 'last-event-id': 'x' } }))).toBe(
      '400 invalid_request',
    )
  })
})

describe('what happens to a process', () => {
  const start = async (id: string, fields: object) =>
    (await app.ask('POST', `/v1/sandboxes/${id}/processes`, fields)).body.pid as number

  const ends: [string, object, (id: string, pid: number) => Promise<unknown>, object][] = [
    ['that ends by itself', { command: 'echo swordfish; exit 3' }, async () => {}, { exitCode: 3, signal: null }],
    [
      'that prints more than is kept',
      { command: 'head -c 3000000 /dev/zero; exit 4' },
      async () => {},
      { exitCode: 4, signal: null },
    ],
    [
      'that gets a signal',
      { command: 'exec sleep 600', name: 'swordfish' },
      (id, pid) => app.ask('POST', `/v1/sandboxes/${id}/processes/${pid}/signal`, { signal: 'TERM' }),
      { signal: 'SIGTERM' },
    ],
    [
      'of a terminal',
      { command: 'exec sh', pty: true },
      (id, pid) => app.ask('POST', `/v1/sandboxes/${id}/processes/${pid}/stdin`, { data: 'exit 5\n' }),
      { exitCode: 5, signal: null },
    ],
  ]
  for (const [what, fields, end, exit] of ends) {
    test(`${what} is told, without its command, name and output`, async () => {
      const id = await app.sandbox()
      const followed = await follow({ query: `?sandboxId=${id}` })
      await followed.started()
      const pid = await start(id, fields)
      await end(id, pid)
      const events = await followed.until('process.ended')
      await followed.close()
      expect(typesOf(events)).toEqual(['process.started', 'process.ended'])
      expect(events[0]).toMatchObject({ sandboxId: id, agent: 'echo', pid })
      expect(events[1]).toMatchObject({ sandboxId: id, agent: 'echo', pid, ...exit })
      expect(JSON.stringify(events)).not.toContain('swordfish')
      await app.ask('DELETE', `/v1/sandboxes/${id}`)
    })
  }

  test('that is removed has ended, and is gone from the list', async () => {
    const id = await app.sandbox()
    const followed = await follow({ query: `?sandboxId=${id}` })
    await followed.started()
    const pid = await start(id, { command: 'exec sleep 600' })
    await app.ask('DELETE', `/v1/sandboxes/${id}/processes/${pid}`)
    await followed.until('process.removed')
    const events = await followed.until('process.ended')
    await followed.close()
    expect(typesOf(events).toSorted()).toEqual(['process.ended', 'process.removed', 'process.started'])
    await app.ask('DELETE', `/v1/sandboxes/${id}`)
  })

  test('that ends with its sandbox has ended, nobody knows how', async () => {
    const id = await app.sandbox()
    const followed = await follow({ query: `?sandboxId=${id}` })
    await followed.started()
    const pid = await start(id, { command: 'exec sleep 600' })
    expect((await app.ask('POST', `/v1/sandboxes/${id}/stop`)).status).toBeLessThan(300)
    const events = await followed.until('process.ended')
    await followed.close()
    expect(events.find(({ type }) => type === 'process.ended')).toMatchObject({ pid, exitCode: null, signal: null })
    await app.ask('DELETE', `/v1/sandboxes/${id}`)
  })

  test('comes to a reader that was away, and to the token of its user alone', async () => {
    const { token } = (await app.ask('POST', '/v1/tokens', { userId: 'bob' })).body
    const [bobs, alices] = [
      await app.sandbox({ externalUserId: 'bob' }),
      await app.sandbox({ externalUserId: 'alice' }),
    ]
    const first = await follow({ key: token })
    await first.started()
    const { lastId } = first
    await first.close()
    await start(alices, { command: 'true' })
    const pid = await start(bobs, { command: 'true' })
    const bob = await follow({ key: token, headers: { 'last-event-id': lastId } })
    const events = await bob.until('process.ended')
    await bob.close()
    expect(events.map(({ sandboxId }) => sandboxId)).toEqual([bobs, bobs])
    expect(events.at(-1)).toMatchObject({ type: 'process.ended', pid, exitCode: 0 })
    for (const id of [bobs, alices]) await app.ask('DELETE', `/v1/sandboxes/${id}`)
  })

  test('takes no output from one that waits for its reader', async () => {
    const id = await app.sandbox()
    const pid = await start(id, { command: 'head -c 3000000 /dev/zero', waitForReader: true })
    // Whoever follows the end of the process has read nothing.
    await app.ask('GET', `/v1/sandboxes/${id}/processes`)
    const output = await app.request('GET', `/v1/sandboxes/${id}/processes/${pid}/output?encoding=base64`)
    const text = await output.text()
    expect(text).not.toContain('"gap"')
    const pieces = [...text.matchAll(/"data":"([^"]*)"/g)].map(
      ([, data = '']) => Buffer.from(data, 'base64').byteLength,
    )
    expect(pieces.reduce((sum, each) => sum + each, 0)).toBe(3_000_000)
    await app.ask('DELETE', `/v1/sandboxes/${id}`)
  })
})

describe('each sees its own', () => {
  beforeAll(() => {
    app.agent('mine')
  })

  test('a thread for a user in the sandbox of another is not the user’s: regression', async () => {
    const { token } = (await app.ask('POST', '/v1/tokens', { userId: 'bob' })).body
    const bob = await follow({ key: token })
    await bob.started()
    const alices = await app.sandbox({ externalUserId: 'alice' })
    const { status, body } = await app.ask('POST', `/v1/sandboxes/${alices}/threads`, { externalUserId: 'bob' })
    expect(status).toBe(201)
    expect((await app.ask('GET', '/v1/threads', undefined, { key: token })).body.threads).toEqual([])
    const bobs = await app.sandbox({ externalUserId: 'bob' })
    const events = await bob.until('sandbox.created')
    await bob.close()
    expect(JSON.stringify(events)).not.toContain(body.id)
    for (const id of [alices, bobs]) await app.ask('DELETE', `/v1/sandboxes/${id}`)
  })

  test('team, agents and user', async () => {
    const tokenFor = async (scope: object) => (await app.ask('POST', '/v1/tokens', scope)).body.token as string
    const foreign = await follow({ key: app.foreignKey })
    const mine = await follow({ key: await tokenFor({ agents: ['mine'] }) })
    const bob = await follow({ key: await tokenFor({ userId: 'bob' }) })
    const all = await follow()
    await Promise.all([foreign, mine, bob, all].map(each => each.started()))
    const echo = await app.sandbox()
    const own = await app.sandbox({ agent: 'mine' })
    const bobs = await app.sandbox({ externalUserId: 'bob' })
    for (const id of [bobs, own, echo]) await app.ask('DELETE', `/v1/sandboxes/${id}`)
    while (typesOf(all.events).filter(type => type === 'sandbox.deleted').length < 3) await Bun.sleep(1)
    await Promise.all([mine.until('sandbox.deleted'), bob.until('sandbox.deleted')])
    expect(foreign.events).toEqual([])
    expect(new Set(mine.events.map(({ sandboxId }) => sandboxId))).toEqual(new Set([own]))
    expect(new Set(bob.events.map(({ sandboxId }) => sandboxId))).toEqual(new Set([bobs]))
    await Promise.all([foreign, mine, bob, all].map(each => each.close()))
  })

  test('and the stream ends with its key', async () => {
    const { key, row } = app.beside(db => createKey(db, { team: 'default', name: 'short' }))
    const followed = await follow({ key })
    await followed.started()
    app.beside(db => revokeKey(db, row.id))
    // Something happens, and it is not told any more.
    const id = await app.sandbox()
    await followed.ended()
    expect(followed.events).toEqual([])
    await app.ask('DELETE', `/v1/sandboxes/${id}`)
  })
})
