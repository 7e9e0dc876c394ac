import { describe, expect, test } from 'bun:test'
import type { Engine, Plugin } from '../../src/plugin-api/index.ts'
import { useApp } from '../support/app.ts'
import { cancel, contents, say, startChat, threadOf } from '../support/chat.ts'
import { until } from '../support/until.ts'

/** Says its prompt when the test lets it, one turn after the other. Takes nothing while it works. */
const gates: PromiseWithResolvers<void>[] = []
const gated: Engine = {
  name: 'gated',
  async *run({ prompt }, { signal }) {
    const gate = Promise.withResolvers<void>()
    signal.addEventListener('abort', () => gate.resolve())
    gates.push(gate)
    await gate.promise
    if (signal.aborted) return { status: 'cancelled' }
    const text = prompt.flatMap(({ parts }) => parts.map(part => String(part.text))).join('+')
    if (text.includes('fail')) return { status: 'failed', error: { code: 'agent_failed', message: 'It failed.' } }
    yield { type: 'text', id: 't', delta: `(${text})` }
    return { status: 'completed' }
  },
}
/** Says that it would take messages, and takes none. */
const deaf: Engine = { ...gated, name: 'deaf', supports: ['steering'] }
/** Asks a person before it answers. */
const asking: Engine = {
  name: 'asking',
  supports: ['approvals'],
  async *run({ prompt, continues }, context) {
    if (continues || !JSON.stringify(prompt).includes('ask')) return yield* gated.run({ prompt, history: [] }, context)
    yield { type: 'tool-call', callId: 'c1', name: 'Bash', input: { command: 'true' } }
    yield { type: 'approval-request', callId: 'c1' }
    return { status: 'waiting' }
  },
}
const plugins: Plugin[] = [
  { name: 'gated', engine: () => gated },
  { name: 'deaf', engine: () => deaf },
  { name: 'asking', engine: () => asking },
]
const app = useApp([], {}, () => plugins)

/** A thread whose first run waits for the test. */
async function busyThread(first = 'one', engine = 'gated') {
  app.agent('gated', {}, { engine })
  gates.splice(0)
  const { body } = await app.ask('POST', '/v1/chat/gated', { mode: 'background', messages: [say(first, 'm1')] })
  const ids: { sandboxId: string; threadId: string } = { sandboxId: body.sandboxId, threadId: body.threadId }
  const path = `/v1/sandboxes/${ids.sandboxId}/threads/${ids.threadId}`
  await until(() => gates.length === 1)
  return {
    ids,
    path,
    post: (text: string, id: string, fields: object = {}, key = app.key) =>
      app.ask(
        'POST',
        '/v1/chat/gated',
        { sandboxId: ids.sandboxId, threadId: ids.threadId, messages: [say(text, id)], whenBusy: 'queue', ...fields },
        { key },
      ),
    queue: async () => (await app.ask('GET', `${path}/queue`)).body,
    waiting: async () => (await app.ask('GET', `${path}/queue`)).body.queue.map(({ id }: any) => id),
    /** Lets the run that waits go on, and waits for the next one. */
    next: async () => {
      const begun = gates.length
      gates.at(-1)?.resolve()
      await until(() => gates.length > begun)
    },
    finish: async () => {
      gates.at(-1)?.resolve()
      await until(async () => (await threadOf(app, ids)).status !== 'streaming')
    },
  }
}

describe('a message for a busy thread that may wait', () => {
  test('is answered 202 with its id, and listed with the thread until its turn', async () => {
    const thread = await busyThread()
    const { status, body } = await thread.post('two', 'm2')
    expect([status, body]).toEqual([202, { ...thread.ids, status: 'queued', messageId: 'm2' }])
    const waiting = [{ id: 'm2', parts: [{ type: 'text', text: 'two' }], status: 'queued' }]
    expect((await threadOf(app, thread.ids)).queue).toMatchObject(waiting)
    expect(await thread.queue()).toMatchObject({ queue: waiting, isStopped: false })
    await thread.next()
    await thread.finish()
    const { queue, status: state } = await threadOf(app, thread.ids)
    expect([queue, state]).toEqual([undefined, 'completed'])
  })

  test('runs after the messages before it, each in a turn of its own', async () => {
    const thread = await busyThread()
    for (const [text, id] of [
      ['two', 'm2'],
      ['three', 'm3'],
      ['four', 'm4'],
    ] as const)
      await thread.post(text, id)
    for (let turn = 0; turn < 3; turn++) await thread.next()
    await thread.finish()
    expect(await contents(app, thread.ids)).toEqual(
      ['one', 'two', 'three', 'four'].flatMap(text => [`user: ${text}`, `assistant: (${text})`]),
    )
  })

  test('is one when it is sent twice', async () => {
    const thread = await busyThread()
    const answers = await Promise.all([thread.post('two', 'm2'), thread.post('two', 'm2')])
    expect(answers.map(({ status, body }) => [status, body.status])).toEqual([
      [202, 'queued'],
      [202, 'queued'],
    ])
    expect(await thread.waiting()).toEqual(['m2'])
    await thread.next()
    // It is the one that is being answered.
    expect((await thread.post('two', 'm2')).body).toEqual({ ...thread.ids, status: 'running', messageId: 'm2' })
    await thread.finish()
    expect(await contents(app, thread.ids)).toEqual(['user: one', 'assistant: (one)', 'user: two', 'assistant: (two)'])
  })

  test('has one turn when it is sent again after its reply, and another when that is not whole', async () => {
    const thread = await busyThread()
    await thread.post('two', 'm2')
    await thread.post('fail', 'm3')
    await thread.next()
    await thread.next()
    await thread.finish()
    for (const [text, id] of [
      ['one', 'm1'],
      ['two', 'm2'],
    ] as const) {
      const { status, body } = await thread.post(text, id)
      expect([status, body]).toEqual([202, { ...thread.ids, status: 'running', messageId: id }])
    }
    expect(gates).toHaveLength(3)
    await thread.post('fail', 'm3', { mode: 'background' })
    await until(() => gates.length === 4)
    await thread.finish()
    await thread.post('two', 'm2', { mode: 'background', trigger: 'regenerate-message' })
    await until(() => gates.length === 5)
    await thread.finish()
  })

  test('is taken back by its id', async () => {
    const thread = await busyThread()
    await thread.post('two', 'm2')
    await thread.post('three', 'm3')
    expect((await app.ask('DELETE', `${thread.path}/queue/m2`)).status).toBe(204)
    expect((await app.ask('DELETE', `${thread.path}/queue/m2`)).body.error.code).toBe('message_not_found')
    await thread.next()
    await thread.finish()
    expect((await contents(app, thread.ids)).filter(each => each.startsWith('user'))).toEqual([
      'user: one',
      'user: three',
    ])
  })

  test('has its own options, and what its client said before that was refused', async () => {
    const thread = await busyThread()
    const messages = [say('one', 'm1'), say('refused', 'm2'), say('three', 'm3')]
    await thread.post('', '', { messages, options: { model: 'another' } })
    await thread.next()
    await thread.finish()
    const { messages: stored } = await threadOf(app, thread.ids)
    expect(stored.at(-1)).toMatchObject({ content: '(refused+three)', metadata: { model: 'another' } })
    expect(stored.map(({ id }: any) => id).slice(0, 4)).toEqual(['m1', stored[1].id, 'm2', 'm3'])
  })

  test('starts at once in a thread that is free', async () => {
    const { response } = await startChat(app, 'hello', { whenBusy: 'queue' })
    expect(await response.text()).toContain('[DONE]')
  })

  test('is found by resume when its turn has come', async () => {
    const thread = await busyThread()
    await thread.post('two', 'm2')
    await thread.next()
    const response = await app.request('GET', `/v1/chat/gated/${thread.ids.threadId}/stream`)
    const reading = response.text()
    await thread.finish()
    expect(await reading).toContain('(two)')
  })

  test('is not replaced by a later message while nobody reads its run', async () => {
    const thread = await busyThread()
    await thread.post('two', 'm2')
    await thread.next()
    expect((await thread.post('three', 'm3', { whenBusy: 'reject' })).body.error.code).toBe('run_active')
    await thread.finish()
  })

  test('is no edit and no regeneration', async () => {
    const thread = await busyThread()
    const edit = await thread.post('uno', 'm1', { messageId: 'm1' })
    const again = await thread.post('one', 'm1', { trigger: 'regenerate-message' })
    const other = await thread.post('uno', 'm1')
    expect([edit, again, other].map(({ body }) => body.error?.code)).toEqual(Array(3).fill('run_active'))
    expect(await thread.waiting()).toEqual([])
    await thread.finish()
  })

  test('waits for a thread that waits for a person, until its turn is over', async () => {
    app.agent('gated', {}, { engine: 'asking', options: { approvals: 'on' } })
    gates.splice(0)
    const { body: place } = await app.ask('POST', '/v1/chat/gated', {
      mode: 'background',
      messages: [say('ask', 'm1')],
    })
    const ids = { sandboxId: place.sandboxId, threadId: place.threadId }
    await until(async () => (await threadOf(app, ids)).status === 'waiting')
    for (const [text, id, whenBusy] of [
      ['two', 'm2', 'queue'],
      ['now', 's1', 'steer'],
    ] as const) {
      const { body } = await app.ask('POST', '/v1/chat/gated', { ...ids, messages: [say(text, id)], whenBusy })
      expect(body.status).toBe('queued')
    }
    const { approvals } = (await app.ask('GET', `/v1/approvals?threadId=${ids.threadId}`)).body
    await app.ask('POST', `/v1/approvals/${approvals[0].id}`, { approved: true })
    for (let turn = 1; turn <= 3; turn++) {
      await until(() => gates.length === turn)
      gates.at(-1)?.resolve()
    }
    await until(async () => (await threadOf(app, ids)).status === 'completed')
    expect((await contents(app, ids)).slice(-4)).toEqual([
      ...['user: two', 'assistant: (two)', 'user: now', 'assistant: (now)'],
    ])
  })

  test('is refused when a hundred wait', async () => {
    const thread = await busyThread()
    for (let count = 0; count < 100; count++) await thread.post('x', `q${count}`)
    const { status, body } = await thread.post('x', 'q100')
    expect([status, body.error.code]).toEqual([409, 'queue_full'])
    expect((await app.ask('DELETE', thread.path)).status).toBe(204)
    const rows = app.beside(db => db.query('select count(*) as count from queued_messages').get())
    expect(rows).toEqual({ count: 0 })
  })

  test('belongs to its user alone', async () => {
    const thread = await busyThread()
    await thread.post('two', 'm2')
    const foreign = { key: app.foreignKey }
    for (const [method, rest] of [
      ['GET', ''],
      ['POST', '/resume'],
      ['DELETE', '/m2'],
    ] as const)
      expect((await app.ask(method, `${thread.path}/queue${rest}`, undefined, foreign)).status).toBe(404)
    expect(await thread.waiting()).toEqual(['m2'])
    await app.ask('DELETE', thread.path)
  })
})

describe('a turn that does not complete stops the queue', () => {
  test('until it is resumed: a failed one', async () => {
    const thread = await busyThread('fail')
    await thread.post('two', 'm2')
    await thread.post('three', 'm3')
    await thread.finish()
    expect(await thread.queue()).toMatchObject({ queue: [{ id: 'm2' }, { id: 'm3' }], isStopped: true })
    expect((await app.ask('POST', `${thread.path}/queue/resume`)).body.queue).toMatchObject([{ id: 'm3' }])
    await until(() => gates.length === 2)
    await thread.next()
    await thread.finish()
    expect((await contents(app, thread.ids)).at(-1)).toBe('assistant: (three)')
  })

  test('a cancelled one keeps it stopped, also past a message that is sent by hand', async () => {
    const thread = await busyThread()
    await thread.post('two', 'm2')
    expect((await cancel(app, thread.ids.sandboxId)).body.status).toBe('cancelled')
    expect(await thread.queue()).toMatchObject({ queue: [{ id: 'm2' }], isStopped: true })
    await thread.post('by hand', 'm3', { mode: 'background' })
    await until(() => gates.length === 2)
    await thread.post('four', 'm4')
    await thread.finish()
    expect(await thread.waiting()).toEqual(['m2', 'm4'])
    expect((await thread.queue()).isStopped).toBe(true)
    // What held it up is gone.
    await app.ask('DELETE', `${thread.path}/queue/m2`)
    await until(() => gates.length === 3)
    await thread.finish()
    expect((await contents(app, thread.ids)).slice(-4)).toEqual([
      ...['user: by hand', 'assistant: (by hand)', 'user: four', 'assistant: (four)'],
    ])
  })

  test('a message that waits is no part of a later one, which its client sends with all that was said', async () => {
    const thread = await busyThread()
    await thread.post('two', 'm2')
    await cancel(app, thread.ids.sandboxId)
    const messages = [say('one', 'm1'), say('two', 'm2'), say('three', 'm3')]
    await thread.post('', '', { messages, whenBusy: 'reject', mode: 'background' })
    await until(() => gates.length === 2)
    await thread.finish()
    expect((await contents(app, thread.ids)).at(-1)).toBe('assistant: (three)')
    await app.ask('POST', `${thread.path}/queue/resume`)
    await until(() => gates.length === 3)
    await thread.finish()
    expect((await contents(app, thread.ids)).slice(-2)).toEqual(['user: two', 'assistant: (two)'])
  })

  test('a message that waits and is sent by hand has its turn once', async () => {
    const thread = await busyThread()
    await thread.post('two', 'm2')
    await cancel(app, thread.ids.sandboxId)
    await thread.post('two', 'm2', { whenBusy: 'reject', mode: 'background' })
    await until(() => gates.length === 2)
    expect(await thread.waiting()).toEqual([])
    await thread.finish()
  })

  test('or ends it, by a cancel that drops it', async () => {
    const thread = await busyThread()
    await thread.post('two', 'm2')
    expect((await cancel(app, thread.ids.sandboxId, '?queue=drop')).body.status).toBe('cancelled')
    expect(await thread.queue()).toEqual({ queue: [], isStopped: false })
  })

  test('a message that its engine cannot answer fails its turn, and keeps what comes after', async () => {
    const thread = await busyThread()
    const tools = { pick: { description: 'Picks.', inputSchema: { type: 'object' } } }
    await thread.post('two', 'm2', { tools })
    await thread.post('three', 'm3')
    await thread.finish()
    await until(async () => (await threadOf(app, thread.ids)).status === 'error')
    const { error, queue } = await threadOf(app, thread.ids)
    expect([error, queue.map(({ id }: any) => id)]).toEqual([expect.stringContaining('tools'), ['m3']])
  })

  test('an agent that is gone fails the turn, and keeps what comes after', async () => {
    const thread = await busyThread()
    await thread.post('two', 'm2')
    await thread.post('three', 'm3')
    app.beside(db => db.run(`delete from agents where slug = 'gated'`))
    await thread.finish()
    await until(async () => (await threadOf(app, thread.ids)).status === 'error')
    const { error, queue } = await threadOf(app, thread.ids)
    expect([error, queue.map(({ id }: any) => id)]).toEqual(['There is no agent "gated".', ['m3']])
  })
})

describe('a message that steers', () => {
  const steer = (ids: { sandboxId: string; threadId: string }, text: string, id: string) =>
    app.ask('POST', '/v1/chat/echo', { ...ids, messages: [say(text, id)], whenBusy: 'steer' })

  test('reaches the running turn between two of its steps', async () => {
    const { response, sandboxId, threadId } = await startChat(app, '$ until test -e /tmp/go; do sleep 0.05; done\nend')
    const ids = { sandboxId, threadId }
    expect(await steer(ids, 'heed me', 's1')).toMatchObject({
      status: 202,
      body: { status: 'steering', messageId: 's1' },
    })
    expect((await threadOf(app, ids)).queue).toMatchObject([{ id: 's1', status: 'steering' }])
    await app.shell(sandboxId, 'touch /tmp/go')
    const text = await response.text()
    expect(text).toContain('{"type":"data-steering","data":{"messageId":"s1"},"transient":true}')
    const { messages, queue } = await threadOf(app, ids)
    expect(messages.map(({ id, role }: any) => (role === 'user' ? id : role)).slice(1)).toEqual(['s1', 'assistant'])
    expect([messages.at(-1).content, queue]).toEqual(['heed me\nend', undefined])
    expect(text.split('[DONE]')).toHaveLength(2)
  })

  test('is one when it is sent again after the turn has taken it, and so is the turn’s own', async () => {
    const wait = (name: string) => `$ until test -e /tmp/${name}; do sleep 0.05; done`
    const messages = [say(`${wait('one')}\n${wait('two')}`, 'm1')]
    const { response, sandboxId, threadId } = await startChat(app, '', { messages })
    const ids = { sandboxId, threadId }
    await steer(ids, 'heed me', 's1')
    await steer(ids, 'and me', 's2')
    await app.shell(sandboxId, 'touch /tmp/one')
    await until(async () => (await threadOf(app, ids)).queue === undefined)
    expect((await steer(ids, 'heed me', 's1')).body).toEqual({ ...ids, status: 'running', messageId: 's1' })
    const again = await app.ask('POST', '/v1/chat/echo', { ...ids, messages, whenBusy: 'queue' })
    expect(again.body.status).toBe('running')
    expect((await steer(ids, 'other words', 's1')).body.error.code).toBe('run_active')
    await app.shell(sandboxId, 'touch /tmp/two')
    await response.text()
    expect((await threadOf(app, ids)).messages).toHaveLength(4)
  })

  test('is a part of the reply in the profile ai-7', async () => {
    const wait = '$ until test -e /tmp/go; do sleep 0.05; done\nend'
    const { response, ...ids } = await startChat(app, wait, { stream: 'ai-7' })
    await steer({ sandboxId: ids.sandboxId, threadId: ids.threadId }, 'heed me', 's1')
    await app.shell(ids.sandboxId, 'touch /tmp/go')
    expect(await response.text()).toContain(
      '{"type":"steering-message","id":"s1","parts":[{"type":"text","text":"heed me"}]}',
    )
  })

  test('waits as others do when the engine takes none', async () => {
    const thread = await busyThread()
    const { body } = await thread.post('now', 's1', { whenBusy: 'steer' })
    expect(body.status).toBe('queued')
    await thread.next()
    await thread.finish()
    expect((await contents(app, thread.ids)).at(-1)).toBe('assistant: (now)')
  })

  test('is the next turn, before all that waits, when the turn has not taken it', async () => {
    const thread = await busyThread('one', 'deaf')
    await thread.post('two', 'm2')
    expect((await thread.post('now', 's1', { whenBusy: 'steer' })).body.status).toBe('steering')
    expect((await thread.post('now too', 's2', { whenBusy: 'steer' })).body.status).toBe('steering')
    expect(await thread.waiting()).toEqual(['s1', 's2', 'm2'])
    for (let turn = 0; turn < 3; turn++) await thread.next()
    await thread.finish()
    expect((await contents(app, thread.ids)).filter(each => each.startsWith('a'))).toEqual(
      ['one', 'now', 'now too', 'two'].map(text => `assistant: (${text})`),
    )
  })

  test('may have waited before', async () => {
    const thread = await busyThread('one', 'deaf')
    await thread.post('two', 'm2')
    await thread.post('three', 'm3')
    expect((await thread.post('three', 'm3', { whenBusy: 'steer' })).body.status).toBe('steering')
    expect((await thread.queue()).queue).toMatchObject([{ id: 'm3', status: 'steering' }, { id: 'm2' }])
    await app.ask('DELETE', thread.path)
  })

  test('is taken back while the engine does not have it', async () => {
    const { response, sandboxId, threadId } = await startChat(app, '$ until test -e /tmp/go; do sleep 0.05; done\nend')
    const ids = { sandboxId, threadId }
    await steer(ids, 'heed me', 's1')
    expect((await app.ask('DELETE', `/v1/sandboxes/${sandboxId}/threads/${threadId}/queue/s1`)).status).toBe(204)
    await app.shell(sandboxId, 'touch /tmp/go')
    expect(await response.text()).not.toContain('heed me')
  })

  test('is kept, first in the queue, when its turn is cancelled', async () => {
    const { response, sandboxId, threadId } = await startChat(app, '$ sleep 60')
    const ids = { sandboxId, threadId }
    await app.ask('POST', '/v1/chat/echo', { ...ids, messages: [say('later', 'q1')], whenBusy: 'queue' })
    await steer(ids, 'heed me', 's1')
    await cancel(app, sandboxId)
    await response.text()
    const path = `/v1/sandboxes/${sandboxId}/threads/${threadId}`
    expect((await app.ask('GET', `${path}/queue`)).body).toMatchObject({
      // No run is there that could take it.
      queue: [{ id: 's1', status: 'queued' }, { id: 'q1' }],
      isStopped: true,
    })
    await app.ask('POST', `${path}/queue/resume`)
    await until(async () => (await contents(app, ids)).at(-1) === 'assistant: later')
    expect((await contents(app, ids)).slice(-4)).toEqual([
      ...['user: heed me', 'assistant: heed me', 'user: later', 'assistant: later'],
    ])
  })
})
