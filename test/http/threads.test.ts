import { beforeAll, describe, expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'
import { cancel, chat, say, startChat, threadOf } from '../support/chat.ts'
import { eventsOf, readChunks } from '../support/sse.ts'

const app = useApp()
let id = ''
beforeAll(async () => {
  id = await app.sandbox()
})
const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
const noUsage = { inputTokens: null, outputTokens: null, totalTokens: null, totalCostUsd: null, durationMs: null }

describe('create', () => {
  const names: [string, unknown, string | null][] = [
    ['a name', { name: 'Fix the tests' }, 'Fix the tests'],
    ['no name', {}, null],
    ['null for a name', { name: null }, null],
    ['an empty name', { name: '' }, ''],
    ['no body', undefined, null],
    ['fields it does not know', { name: 'a', surprise: [1] }, 'a'],
  ]
  for (const [what, body, name] of names) {
    test(`takes ${what}`, async () => {
      const answer = await app.ask('POST', `/v1/sandboxes/${id}/threads`, body)
      expect(answer.status).toBe(201)
      const thread = { id: expect.stringMatching(/^thr_/), name, status: 'active', createdAt: time, updatedAt: time }
      expect(answer.body).toEqual(thread)
      expect(await threadOf(app, { sandboxId: id, threadId: answer.body.id })).toEqual({
        ...answer.body,
        messages: [],
        usage: noUsage,
        error: null,
        completedAt: null,
      })
    })
  }
})

test('a list of a sandbox’s threads is a bare array, newest first', async () => {
  const own = await app.sandbox()
  expect((await app.ask('GET', `/v1/sandboxes/${own}/threads`)).body).toEqual([])
  const made = []
  for (const name of ['a', 'b', 'c'])
    made.unshift((await app.ask('POST', `/v1/sandboxes/${own}/threads`, { name })).body)
  expect((await app.ask('GET', `/v1/sandboxes/${own}/threads`)).body).toEqual(made)
})

test('delete answers 204 without a body; the thread is gone, its sandbox and others are not', async () => {
  const [a, b] = [await chat(app, 'a', { sandboxId: id }), await chat(app, 'b', { sandboxId: id })]
  const path = `/v1/sandboxes/${id}/threads/${a.threadId}`
  const { status, body } = await app.ask('DELETE', path)
  expect({ status, body }).toEqual({ status: 204, body: '' })
  expect((await app.ask('GET', path)).status).toBe(404)
  expect((await app.ask('DELETE', path)).status).toBe(404)
  expect((await threadOf(app, b)).messages).toHaveLength(2)
})

test('delete during a run ends the run first', async () => {
  const { threadId, response } = await startChat(app, '/slow 1000', { sandboxId: id })
  expect((await app.ask('DELETE', `/v1/sandboxes/${id}/threads/${threadId}`)).status).toBe(204)
  await response.text()
  expect((await cancel(app, id)).body).toEqual({ status: 'idle', runs: [] })
})

describe('the status, usage and error of a thread', () => {
  test('streaming during a run, completed after it', async () => {
    const started = await startChat(app, '/slow 1000', { sandboxId: id })
    expect(await threadOf(app, started)).toMatchObject({ status: 'streaming', completedAt: null, usage: noUsage })
    const listed = (await app.ask('GET', `/v1/sandboxes/${id}`)).body.threads
    expect(listed[0]).toEqual({ id: started.threadId, name: '/slow 1000', status: 'streaming' })
    await cancel(app, id)
    await started.response.text()

    const done = await chat(app, 'one two three', { sandboxId: id, threadId: started.threadId })
    expect(await threadOf(app, done)).toMatchObject({ status: 'completed', error: null, completedAt: time })
  })

  test('cancelled after a cancel', async () => {
    const started = await startChat(app, '/slow 1000', { sandboxId: id })
    await cancel(app, id)
    await started.response.text()
    expect(await threadOf(app, started)).toMatchObject({ status: 'cancelled', error: null, completedAt: time })
  })

  test('error after a failure, with its words', async () => {
    const failed = await chat(app, 'words before\n/fail', { sandboxId: id })
    const thread = await threadOf(app, failed)
    expect(thread).toMatchObject({ status: 'error', error: 'The echo engine fails because it was asked to.' })
    expect(thread.messages[1]).toMatchObject({ role: 'assistant', content: 'words before\n' })
  })

  test('sums over its runs', async () => {
    const first = await chat(app, 'one two three', { sandboxId: id })
    const second = await chat(app, 'four five', { sandboxId: id, threadId: first.threadId })
    const [a, b] = [first, second].map(
      ({ chunks }) => chunks.find(({ type }) => type === 'message-metadata').messageMetadata,
    )
    expect(a).toMatchObject({ inputTokens: 3, outputTokens: 3 })
    // The second turn reads all of the first.
    expect(b).toMatchObject({ inputTokens: 8, outputTokens: 2 })
    expect((await threadOf(app, second)).usage).toEqual({
      inputTokens: 11,
      outputTokens: 5,
      totalTokens: 16,
      totalCostUsd: 0,
      durationMs: a.durationMs + b.durationMs,
    })
  })
})

test('messages have every field of the contract and of the clients', async () => {
  const { threadId, runId, chunks } = await chat(app, 'hello there', {
    sandboxId: id,
    messages: [say('hello there', 'msg-1')],
  })
  const { messages } = await threadOf(app, { sandboxId: id, threadId })
  const { messageMetadata } = chunks.find(({ type }) => type === 'message-metadata')
  expect(messageMetadata.runId).toBe(runId)
  expect(messages).toEqual([
    {
      id: 'msg-1',
      role: 'user',
      content: 'hello there',
      parts: [{ type: 'text', text: 'hello there' }],
      metadata: null,
      createdAt: time,
    },
    {
      id: expect.stringMatching(/^msg_/),
      role: 'assistant',
      content: 'hello there',
      parts: [{ type: 'text', text: 'hello there', state: 'done' }],
      metadata: messageMetadata,
      createdAt: time,
    },
  ])
})

test('during a run the thread shows what was asked, and not the half reply', async () => {
  const first = await chat(app, 'first', { sandboxId: id })
  const { response, ...ids } = await startChat(app, 'second\n/slow 1000', { sandboxId: id, threadId: first.threadId })
  const events = eventsOf(response)
  for await (const { data } of events) if (data.delta === '2 ') break
  expect((await threadOf(app, ids)).messages.map(({ role, content }: any) => `${role}: ${content}`)).toEqual([
    'user: first',
    'assistant: first',
    'user: second\n/slow 1000',
  ])
  await cancel(app, id)
  const { messages } = await threadOf(app, ids)
  expect(messages).toHaveLength(4)
  expect(messages[3].content).toStartWith('second\n1 2 ')
})

test('a thread that is named by a chat keeps that name', async () => {
  const { response, ...ids } = await startChat(app, 'a', { sandboxId: id, name: 'Named' })
  await readChunks(response)
  expect((await threadOf(app, ids)).name).toBe('Named')
  await chat(app, 'b', { sandboxId: id, threadId: ids.threadId, name: 'Other' })
  expect((await threadOf(app, ids)).name).toBe('Named')
})
