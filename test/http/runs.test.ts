import { beforeAll, expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'
import { cancel, chat, startChat } from '../support/chat.ts'
import { eventsOf } from '../support/sse.ts'

const app = useApp()
let id = ''
beforeAll(async () => {
  app.agent('another')
  id = await app.sandbox()
})
const list = async (query: Record<string, string>, key = app.key) =>
  (await app.ask('GET', `/v1/runs?${new URLSearchParams(query)}`, undefined, { key })).body

test('a run tells its usage, times and error, and the tools that it called', async () => {
  const { runId, threadId } = await chat(app, '$ echo hello', { sandboxId: id })
  const { status, body } = await app.ask('GET', `/v1/runs/${runId}`)
  expect(status).toBe(200)
  expect(body).toMatchObject({ id: runId, threadId, sandboxId: id, status: 'completed', error: null })
  expect(body.usage.totalTokens).toBe(body.usage.inputTokens + body.usage.outputTokens)
  expect(body.durationMs).toBeGreaterThanOrEqual(0)
  expect(Date.parse(body.endedAt)).toBeGreaterThanOrEqual(Date.parse(body.startedAt))
  expect(body.tools).toEqual([{ callId: expect.any(String), name: expect.any(String), state: 'output-available' }])
  const failed = await chat(app, '/fail', { sandboxId: id })
  expect((await app.ask('GET', `/v1/runs/${failed.runId}`)).body).toMatchObject({
    status: 'failed',
    error: 'The echo engine fails because it was asked to.',
    tools: [],
  })
})

test('a run tells its tools also when an edit has moved its reply to a branch', async () => {
  const messages = [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: '$ echo one' }] }]
  const { runId, threadId } = await chat(app, '', { sandboxId: id, messages })
  await chat(app, 'two', { sandboxId: id, threadId, messageId: 'm1' })
  const { body } = await app.ask('GET', `/v1/runs/${runId}`)
  expect(body.tools).toEqual([{ callId: expect.any(String), name: expect.any(String), state: 'output-available' }])
})

test('an active run tells the tools that it has called so far', async () => {
  const { runId, response } = await startChat(app, '$ echo hello; sleep 60', { sandboxId: id })
  for await (const { data } of eventsOf(response)) if (data.type === 'tool-input-available') break
  const { body } = await app.ask('GET', `/v1/runs/${runId}`)
  expect(body).toMatchObject({ status: 'active', endedAt: null, durationMs: null })
  expect(body.tools).toEqual([{ callId: expect.any(String), name: expect.any(String), state: 'input-available' }])
  expect((await list({ status: 'active' })).runs.map((run: any) => run.id)).toEqual([runId])
  await cancel(app, id)
})

test('runs are listed, newest first, in pages', async () => {
  const own = await app.sandbox()
  const first = await chat(app, 'a', { sandboxId: own })
  const second = await chat(app, 'b', { sandboxId: own, threadId: first.threadId })
  const third = await chat(app, '/fail', { sandboxId: own })
  const ids = async (query: Record<string, string>) => (await list(query)).runs.map((run: any) => run.id)
  expect(await ids({ sandboxId: own })).toEqual([third.runId, second.runId, first.runId])
  expect(await ids({ threadId: first.threadId })).toEqual([second.runId, first.runId])
  expect(await ids({ sandboxId: own, status: 'failed' })).toEqual([third.runId])
  const page = await list({ sandboxId: own, limit: '2' })
  expect(page.nextBefore).toBe(second.runId)
  expect(await ids({ sandboxId: own, before: page.nextBefore })).toEqual([first.runId])
  expect((await app.ask('GET', '/v1/runs?status=odd')).status).toBe(400)
})

test('runs of another team, agent or user are not there: regression', async () => {
  const { runId } = await chat(app, 'a', { sandboxId: id })
  expect((await list({}, app.foreignKey)).runs).toEqual([])
  for (const fields of [{ agents: ['another'] }, { userId: 'u1' }]) {
    const key = (await app.ask('POST', '/v1/tokens', fields)).body.token
    expect((await list({}, key)).runs).toEqual([])
    const { status, body } = await app.ask('GET', `/v1/runs/${runId}`, undefined, { key: key })
    expect([status, body.error.code]).toEqual([404, 'run_not_found'])
  }
  expect((await app.ask('GET', '/v1/runs/run_none')).status).toBe(404)
})
