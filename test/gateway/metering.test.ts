import { expect, test } from 'bun:test'
import { usageBy } from '../../src/db/model-calls.ts'
import { ensureTeam } from '../../src/db/teams.ts'
import { cleanUpAfterEach } from '../runs/support.ts'
import { call, gatewayScene, wireCases } from './support.ts'
import { told } from './upstream.ts'

cleanUpAfterEach()

for (const wire of wireCases) {
  test(`${wire.wire}: a whole stream is metered exactly`, async () => {
    const { open, calls } = gatewayScene()
    const session = open({ model: wire.model })
    const text = await (await call(session, wire, 'hi')).text()
    expect(text).toContain('Hello ')
    expect(calls()).toMatchObject([{ status: 'completed', ...told }])
    expect(session.takeUsage()).toMatchObject({ inputTokens: 150, outputTokens: 25, costUsd: calls()[0]!.costUsd })
    expect(session.takeUsage()).toBeUndefined()
  })

  test(`${wire.wire}: a whole JSON answer is metered exactly`, async () => {
    const { open, calls } = gatewayScene()
    const answer = await call(open({ model: wire.model }), wire, 'hi', { stream: false })
    expect(JSON.stringify(await answer.json())).toContain('fake model')
    expect(calls()).toMatchObject([{ status: 'completed', ...told }])
  })

  test(`${wire.wire}: a stream that the provider cuts off costs what was seen`, async () => {
    const { open, calls } = gatewayScene()
    await expect((await call(open({ model: wire.model }), wire, 'CUT')).text()).rejects.toThrow('before its reply')
    const [row] = calls()
    expect(row).toMatchObject({ status: 'failed', outputTokens: 4 })
    expect(row!.inputTokens).toBeGreaterThan(5)
  })

  test(`${wire.wire}: a stream that fails on its way costs what was seen`, async () => {
    const { open, calls } = gatewayScene()
    await (await call(open({ model: wire.model }), wire, 'MIDERR')).text()
    expect(calls()).toMatchObject([{ status: 'failed', outputTokens: 4 }])
  })

  test(`${wire.wire}: a caller that goes ends the call upstream and pays for what was seen`, async () => {
    const { open, calls, upstream } = gatewayScene()
    const gone = new AbortController()
    const answer = await call(open({ model: wire.model }), wire, 'STALL', { signal: gone.signal })
    const reader = answer.body!.getReader()
    for (let text = ''; !text.includes('the '); ) text += new TextDecoder().decode((await reader.read()).value)
    gone.abort()
    await upstream.seen[0]!.gone
    expect(calls()).toMatchObject([{ status: 'aborted', outputTokens: 4 }])
    await expect(reader.read()).rejects.toThrow()
  })

  test(`${wire.wire}: an error of the provider costs nothing`, async () => {
    const { open, calls, log } = gatewayScene()
    const answer = await call(open({ model: wire.model }), wire, 'ERR529')
    expect(answer.status).toBe(529)
    expect(await answer.text()).toContain('fake 529')
    expect(answer.headers.get('retry-after-ms')).toBe('50')
    expect(calls()).toMatchObject([{ status: 'failed', inputTokens: 0, outputTokens: 0, costUsd: 0 }])
    expect(log.join()).toContain('answered 529')
  })

  test(`${wire.wire}: an upstream that hangs ends when its run does, and its input is paid for`, async () => {
    const { open, calls, upstream } = gatewayScene()
    const session = open({ model: wire.model })
    const answer = call(session, wire, 'HANG '.repeat(100))
    while (upstream.seen.length === 0) await new Promise(setImmediate)
    await session.close()
    expect(calls()).toMatchObject([{ status: 'aborted', outputTokens: 0 }])
    expect(calls()[0]!.inputTokens).toBeGreaterThan(100)
    await upstream.seen[0]!.gone
    expect((await answer).status).toBe(401)
  })
}

test('a caller that cancels the body after the last event has had a whole answer', async () => {
  const { open, calls } = gatewayScene()
  const answer = await call(open(), wireCases[0]!, 'hi')
  const reader = answer.body!.getReader()
  for (let text = ''; !text.includes('message_stop'); ) text += new TextDecoder().decode((await reader.read()).value)
  await reader.cancel()
  expect(calls()).toMatchObject([{ status: 'completed', ...told }])
})

test('a provider that tells no usage is metered by size', async () => {
  const { open, calls } = gatewayScene()
  await (await call(open({ model: 'local/qwen3:8b' }), wireCases[1]!, 'NOUSAGE')).text()
  const [row] = calls()
  expect(row).toMatchObject({ status: 'completed', outputTokens: Math.ceil('Hello from the fake model.'.length / 4) })
  expect(row!.inputTokens).toBeGreaterThan(5)
})

test('an image is not counted by its characters', async () => {
  const { open, calls } = gatewayScene()
  const image = Buffer.alloc(1024 * 1024).toString('base64')
  await (await call(open({ model: 'local/qwen3:8b' }), wireCases[1]!, `NOUSAGE ${image}`)).text()
  expect(calls()[0]!.inputTokens).toBeLessThan(2000)
})

test('what is only asked, like token counts and models, is no call', async () => {
  const { open, calls } = gatewayScene()
  const session = open()
  const { access } = session
  const models = await access.fetch(`${access.baseUrl}/models`, { headers: { 'x-api-key': access.token } })
  expect(await models.json()).toMatchObject({ object: 'list' })
  const count = await call(session, { ...wireCases[0]!, path: '/messages/count_tokens' }, 'hi', { stream: false })
  expect(await count.json()).toEqual({ input_tokens: 100 })
  expect(calls()).toEqual([])
})

test('usage in every group adds up to the calls', async () => {
  const { db, open, calls } = gatewayScene()
  for (const [index, wire] of [...wireCases, ...wireCases].entries()) {
    const session = open({
      model: wire.model,
      agentSlug: `agent-${index % 2}`,
      threadId: `thr_${index % 3}`,
      ...(index % 2 === 0 && { keyId: 'key_1' }),
    })
    await (await call(session, wire, index === 3 ? 'MIDERR' : 'hi')).text()
  }
  const teamId = ensureTeam(db, 'team').id
  const cost = calls().reduce((sum, row) => sum + row.costUsd, 0)
  const tokens = calls().reduce((sum, row) => sum + row.inputTokens + row.outputTokens, 0)
  const sizes = { agent: 2, thread: 3, key: 2, model: 4, day: 1 }
  for (const groupBy of ['agent', 'thread', 'key', 'model', 'day'] as const) {
    const groups = usageBy(db, teamId, groupBy)
    expect(groups.length).toBe(sizes[groupBy])
    expect(groups.reduce((sum, group) => sum + group.calls, 0)).toBe(8)
    expect(groups.reduce((sum, group) => sum + group.inputTokens + group.outputTokens, 0)).toBe(tokens)
    expect(groups.reduce((sum, group) => sum + group.costUsd, 0)).toBeCloseTo(cost, 9)
  }
  expect(usageBy(db, 'team_other', 'agent')).toEqual([])
  expect(usageBy(db, teamId, 'day', { to: '2020-01-01' })).toEqual([])
})

test("Gemini's stream without events, a list of objects, is metered exactly", async () => {
  const list = [
    { candidates: [{ content: { parts: [{ text: 'Hi' }] } }] },
    {
      candidates: [{ finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: 7, candidatesTokenCount: 2, thoughtsTokenCount: 1 },
    },
  ]
  const { open, calls } = gatewayScene({
    fetch: Object.assign(async () => Response.json(list), { preconnect: () => {} }),
  })
  await (await call(open({ model: 'gemini/gemini-2.5-flash' }), wireCases[3]!, 'hi')).text()
  expect(calls()).toMatchObject([{ status: 'completed', inputTokens: 7, outputTokens: 3 }])
})

test('an event is read whole, however its bytes come', async () => {
  const event =
    'data: {"choices":[{"finish_reason":"stop","delta":{"content":"ä€"}}],"usage":{"prompt_tokens":7,"completion_tokens":2}}'
  const bytes = new TextEncoder().encode(`: comment\r\n\r\n${event}`)
  const body = () =>
    new ReadableStream({
      start(controller) {
        for (const byte of bytes) controller.enqueue(Uint8Array.of(byte))
        controller.close()
      },
    })
  const answer = async () => new Response(body(), { headers: { 'content-type': 'text/event-stream; charset=utf-8' } })
  const { open, calls } = gatewayScene({ fetch: Object.assign(answer, { preconnect: () => {} }) })
  const text = await (await call(open({ model: 'local/qwen3:8b' }), wireCases[1]!, 'hi')).text()
  expect(text).toBe(new TextDecoder().decode(bytes))
  expect(calls()).toMatchObject([{ status: 'completed', inputTokens: 7, outputTokens: 2 }])
})

test('numbers of a provider that make no sense are not believed', async () => {
  const usage = { prompt_tokens: -5, completion_tokens: 1e300, prompt_tokens_details: { cached_tokens: 5e6 } }
  const answer = async () => Response.json({ choices: [{ finish_reason: 'stop' }], usage })
  const { open, calls } = gatewayScene({ fetch: Object.assign(answer, { preconnect: () => {} }) })
  await (await call(open({ model: 'local/qwen3:8b' }), wireCases[1]!, 'hi', { stream: false })).text()
  const [row] = calls()
  expect(row!.inputTokens).toBeGreaterThan(0)
  expect(row!.outputTokens).toBeLessThan(100)
  expect(row!.cacheReadTokens).toBe(row!.inputTokens)
})
