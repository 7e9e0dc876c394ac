import { beforeAll, describe, expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'
import { cancel, chat, contents, resume, say, startChat, threadOf } from '../support/chat.ts'
import { eventsOf, readChunks, textIn } from '../support/sse.ts'
import { until } from '../support/until.ts'

const app = useApp()
let id = ''
beforeAll(async () => {
  id = await app.sandbox()
})
const post = (fields: object) => app.ask('POST', '/v1/chat/echo', { messages: [say('hi')], ...fields })

describe('routing', () => {
  test('neither id makes a sandbox and a thread', async () => {
    const { sandboxId, threadId } = await chat(app, 'hi')
    expect((await app.ask('GET', `/v1/sandboxes/${sandboxId}`)).body.threads).toEqual([
      { id: threadId, name: 'hi', status: 'completed' },
    ])
    await app.ask('DELETE', `/v1/sandboxes/${sandboxId}`)
  })

  test('a sandbox alone gets a new thread each time', async () => {
    const [a, b] = [await chat(app, 'a', { sandboxId: id }), await chat(app, 'b', { sandboxId: id })]
    expect([a.sandboxId, b.sandboxId]).toEqual([id, id])
    expect(a.threadId).not.toBe(b.threadId)
    expect(await contents(app, b)).toEqual(['user: b', 'assistant: b'])
  })

  test('both ids go on with the thread', async () => {
    const first = await chat(app, 'first', { sandboxId: id })
    const second = await chat(app, 'second', { sandboxId: id, threadId: first.threadId })
    expect(second.threadId).toBe(first.threadId)
    expect(await contents(app, first)).toEqual(['user: first', 'assistant: first', 'user: second', 'assistant: second'])
  })

  test('a thread without its sandbox is 400', async () => {
    const { threadId } = await chat(app, 'a', { sandboxId: id })
    const { status, body } = await post({ threadId })
    expect({ status, code: body.error.code }).toEqual({ status: 400, code: 'invalid_request' })
    expect(body.message).toContain('threadId')
  })

  test('a thread of another sandbox is 404', async () => {
    const other = await app.sandbox()
    const { threadId } = await chat(app, 'a', { sandboxId: id })
    const { status, body } = await post({ sandboxId: other, threadId })
    expect({ status, code: body.error.code }).toEqual({ status: 404, code: 'thread_not_found' })
  })

  test('a refused chat has made nothing', async () => {
    const before = app.environmentIds.length
    await post({ messages: [say(' ')] })
    await app.ask('POST', '/v1/chat/nobody', { messages: [say('hi')] })
    expect(app.environmentIds.length).toBe(before)
  })

  test('a chat whose set-up fails is an error, not a stream', async () => {
    app.agent('broken', { setup: ['exit 1'] })
    const { status, body } = await app.ask('POST', '/v1/chat/broken', { messages: [say('hi')] })
    expect({ status, code: body.error.code }).toEqual({ status: 400, code: 'setup_failed' })
  })
})

describe('the body', () => {
  test('may have any other keys, also the AI SDK’s', async () => {
    const fields = { id: 'chat-1', trigger: 'submit-message', messageId: 'm', surprise: { a: [1] }, apiKey: 'x' }
    expect(textIn((await chat(app, 'hi', { sandboxId: id, ...fields })).chunks)).toBe('hi')
  })

  test('may have every option of the clients', async () => {
    const options = {
      model: 'some-model',
      systemPrompt: { type: 'preset', preset: 'claude_code', append: 'more' },
      maxTurns: 3,
      maxBudgetUsd: 0.5,
      maxSandboxBudgetUsd: 10,
      permissionMode: 'default',
      disallowedTools: ['Bash'],
      unknown: true,
    }
    const { chunks } = await chat(app, 'hi', { sandboxId: id, options })
    expect(chunks.find(({ type }) => type === 'message-metadata').messageMetadata.model).toBe('some-model')
  })
})

/** Words that take some seconds: a busy machine needs them before it comes to the next request. */
const LONG = 80
const counted = (count: number) => Array.from({ length: count }, (_, index) => `${index + 1} `).join('')

describe('in the background', () => {
  test('202 at once with the ids, and the run goes on without a reader', async () => {
    const { status, body } = await post({ sandboxId: id, mode: 'background', messages: [say('/slow 3')] })
    expect(status).toBe(202)
    expect(body).toEqual({ sandboxId: id, threadId: expect.stringMatching(/^thr_/), status: 'running' })
    await until(async () => (await threadOf(app, body)).status === 'completed', 'it completes')
    expect(await contents(app, body)).toEqual(['user: /slow 3', 'assistant: 1 2 3 '])
  })

  test('it can be watched', async () => {
    const { body } = await post({ sandboxId: id, mode: 'background', messages: [say(`/slow ${LONG}`)] })
    const watched = await resume(app, id, undefined, `?threadId=${body.threadId}`)
    expect(textIn(await readChunks(watched))).toBe(counted(LONG))
  })
})

describe('a thread with a run', () => {
  const busy = async (fields: object) => {
    const { status, body } = await post({ sandboxId: id, ...fields })
    return `${status} ${body?.error?.code}`
  }

  test('that is read refuses a second: 409 run_active, and is not disturbed', async () => {
    const { response, threadId } = await startChat(app, `/slow ${LONG}`, { sandboxId: id })
    expect(await busy({ threadId })).toBe('409 run_active')
    expect(textIn(await readChunks(response))).toBe(counted(LONG))
    expect(await contents(app, { sandboxId: id, threadId })).toHaveLength(2)
  })

  test('in the background refuses a second: 409 run_active', async () => {
    const { body } = await post({ sandboxId: id, mode: 'background', messages: [say('/slow 1000')] })
    expect(await busy({ threadId: body.threadId })).toBe('409 run_active')
    await cancel(app, id)
  })

  test('that nobody reads any more is cancelled for the next', async () => {
    const { response, threadId } = await startChat(app, '/slow 1000', { sandboxId: id })
    for await (const { data } of eventsOf(response)) if (data.delta === '2 ') break
    await until(() => app.runtime.runs.activeOn(threadId)?.readerCount === 0)
    expect(textIn((await chat(app, 'next', { sandboxId: id, threadId })).chunks)).toBe('next')
    const [, partial, , last] = await contents(app, { sandboxId: id, threadId })
    expect(partial).toStartWith('assistant: 1 2 ')
    expect(last).toBe('assistant: next')
  })

  test('lets other threads of the sandbox run beside it', async () => {
    const [a, b] = await Promise.all([chat(app, '/slow 4', { sandboxId: id }), chat(app, '/slow 5', { sandboxId: id })])
    expect([textIn(a.chunks), textIn(b.chunks)]).toEqual(['1 2 3 4 ', '1 2 3 4 5 '])
    expect([await contents(app, a), await contents(app, b)]).toEqual([
      ['user: /slow 4', 'assistant: 1 2 3 4 '],
      ['user: /slow 5', 'assistant: 1 2 3 4 5 '],
    ])
  })

  test('of many posts at once on a thread, one runs and the others are 409', async () => {
    const { threadId } = await chat(app, 'first', { sandboxId: id })
    const answers = await Promise.all(
      Array.from({ length: 5 }, () => busy({ threadId, messages: [say(`/slow ${LONG}`)] })),
    )
    expect(answers.sort()).toEqual(['200 undefined', ...Array(4).fill('409 run_active')])
  })
})
