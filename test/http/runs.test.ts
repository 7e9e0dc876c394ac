import { beforeAll, describe, expect, test } from 'bun:test'
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

describe('the events of a run', () => {
  const eventsOfRun = async (runId: string, query = '', key = app.key) =>
    (await app.ask('GET', `/v1/runs/${runId}/events${query}`, undefined, { key })).body
  /** All of them, a page after the other. */
  async function all(runId: string, limit: number) {
    const events: any[] = []
    for (let after: number | null = 0; after !== null; ) {
      const page: any = await eventsOfRun(runId, `?limit=${limit}&after=${after}`)
      expect(page.events.length).toBeLessThanOrEqual(limit)
      events.push(...page.events)
      after = page.nextAfter
    }
    return events
  }
  /** As housekeeping does with runs that can no longer be resumed. */
  const putAway = () => app.runtime.runs.purge(new Date(Date.now() + 11 * 60_000))
  const textOfEvents = (events: any[]) =>
    events.map(({ chunk }) => (chunk.type === 'text-delta' ? chunk.delta : '')).join('')

  test('are the chunks of its stream in order, with the times at which they were made, also once they are put away', async () => {
    const { runId } = await chat(app, '/slow 40', { sandboxId: id, stream: 'ai-7' })
    const events = await all(runId, 7)
    expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1))
    expect(events[0].chunk.type).toBe('start')
    expect(events.at(-1).chunk).toEqual({ type: 'finish', finishReason: 'stop' })
    expect(textOfEvents(events)).toContain('38 39 40')
    const times = events.map(({ at }) => Date.parse(at))
    expect(times).toEqual(times.toSorted((a, b) => a - b))
    const { body: run } = await app.ask('GET', `/v1/runs/${runId}`)
    expect(times[0]).toBeGreaterThanOrEqual(Date.parse(run.startedAt))
    // The echo engine waits between words: the times tell that they did not come at once.
    expect(new Set(times).size).toBeGreaterThan(10)
    await putAway()
    const rows = app.beside(db => db.query('select 1 from run_chunks where run_id = ?').all(runId))
    expect(rows).toEqual([])
    expect(await all(runId, 7)).toEqual(events)
    expect((await eventsOfRun(runId, `?after=${events.at(-1).seq}`)).events).toEqual([])
  })

  test('are the same whatever profile its reader asked for, and without marks of the server’s own', async () => {
    const { runId } = await chat(app, '$ echo hello', { sandboxId: id })
    const types = (await all(runId, 100)).map(({ chunk }) => chunk.type)
    expect(types).toEqual(expect.arrayContaining(['start-step', 'tool-input-available', 'tool-output-available']))
    expect(types).not.toContain('data-tool-begin')
  })

  test('of one that goes on are what there is, and more later', async () => {
    const { runId, response } = await startChat(app, '/slow 2000', { sandboxId: id })
    for await (const { data } of eventsOf(response)) if (data.type === 'text-delta') break
    const first = await eventsOfRun(runId)
    expect(first.events.length).toBeGreaterThan(1)
    expect(first.nextAfter).toBe(first.events.at(-1).seq)
    await cancel(app, id)
    const rest = await eventsOfRun(runId, `?after=${first.nextAfter}`)
    expect(rest.events[0].seq).toBe(first.nextAfter + 1)
    expect(rest.events.map(({ chunk }: any) => chunk.type)).toContain('abort')
  })

  test('of an earlier version have no times', async () => {
    const { runId } = await chat(app, 'old', { sandboxId: id })
    app.beside(db => db.query('update run_chunks set at_ms = null where run_id = ?').run(runId))
    expect(new Set((await all(runId, 3)).map(({ at }) => at))).toEqual(new Set([null]))
    await putAway()
    expect(new Set((await all(runId, 3)).map(({ at }) => at))).toEqual(new Set([null]))
  })

  test('are gone after a week, and with their thread', async () => {
    const own = await app.sandbox()
    const old = await chat(app, 'old', { sandboxId: own })
    const deleted = await chat(app, 'deleted', { sandboxId: own })
    await putAway()
    app.beside(db => db.query("update log_pages set kept_at = '2020-01-01' where run_id = ?").run(old.runId))
    await putAway()
    const pages = (runId: string) => app.beside(db => db.query('select 1 from log_pages where run_id = ?').all(runId))
    expect(await eventsOfRun(deleted.runId)).not.toEqual({ events: [], nextAfter: null })
    expect([pages(old.runId).length, pages(deleted.runId).length]).toEqual([0, 1])
    expect(await eventsOfRun(old.runId)).toEqual({ events: [], nextAfter: null })
    await app.ask('DELETE', `/v1/sandboxes/${own}/threads/${deleted.threadId}`)
    expect(pages(deleted.runId)).toEqual([])
  })

  test('of another team, agent or user are not there: regression', async () => {
    const { runId } = await chat(app, 'a', { sandboxId: id })
    const keys = [app.foreignKey]
    for (const fields of [{ agents: ['another'] }, { userId: 'u1' }])
      keys.push((await app.ask('POST', '/v1/tokens', fields)).body.token)
    for (const key of keys) expect((await eventsOfRun(runId, '', key)).error?.code).toBe('run_not_found')
    const { token } = (await app.ask('POST', '/v1/tokens', { agents: ['echo'] })).body
    expect((await eventsOfRun(runId, '', token)).events.length).toBeGreaterThan(3)
    expect((await app.ask('GET', `/v1/runs/${runId}/events?after=x`)).status).toBe(400)
  })
})
