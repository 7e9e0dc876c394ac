import { expect, test } from 'bun:test'
import { cleanUpAfterEach } from '../runs/support.ts'
import { type ChatApp, chatApp } from './chat-app.ts'
import { DOLLAR_A_TOKEN } from './support.ts'

cleanUpAfterEach()

/** Run, thread and usage must tell the same, whatever happened. */
async function expectSameEverywhere(app: ChatApp, threadId: string, sandboxId: string, metadata: any) {
  const { groups, total } = (await (await app.request('GET', '/v1/usage?groupBy=thread')).json()) as any
  const mine = groups.find((group: any) => group.key === threadId)
  const { usage } = (await (await app.request('GET', `/v1/sandboxes/${sandboxId}/threads/${threadId}`)).json()) as any
  expect(metadata).toMatchObject({
    inputTokens: mine.inputTokens,
    outputTokens: mine.outputTokens,
    totalCostUsd: mine.costUsd,
  })
  expect(usage).toMatchObject({
    inputTokens: mine.inputTokens,
    outputTokens: mine.outputTokens,
    totalCostUsd: mine.costUsd,
  })
  expect(total.calls).toBe(app.calls().length)
  expect(mine.costUsd).toBeGreaterThan(0)
  return mine
}

const metadataOf = (frames: any[]) =>
  frames.find(({ chunk }) => chunk.type === 'message-metadata')?.chunk.messageMetadata

test('a whole run tells what its calls used', async () => {
  const app = await chatApp()
  const { ids, body } = await app.chat('coder', 'one\ntwo\nthree')
  const frames = await app.frames(body)
  const mine = await expectSameEverywhere(app, ids.threadId!, ids.sandboxId!, metadataOf(frames))
  expect(mine).toMatchObject({ calls: 3, inputTokens: 450, outputTokens: 75, cacheReadTokens: 90 })
  expect(metadataOf(frames).model).toBe('anthropic/claude-sonnet-4-6')
  for (const groupBy of ['agent', 'key', 'model', 'day']) {
    const { total, groups } = (await (await app.request('GET', `/v1/usage?groupBy=${groupBy}`)).json()) as any
    expect(total).toMatchObject({ calls: 3, inputTokens: 450, outputTokens: 75, costUsd: mine.costUsd })
    expect(groups.length).toBe(1)
  }
})

test('a run that is cancelled while the model talks tells what it used', async () => {
  const app = await chatApp()
  const { ids, body } = await app.chat('coder', 'one\nSTALL')
  while (app.upstream.seen.length < 2) await new Promise(setImmediate)
  await app.request('DELETE', `/v1/chat/coder/${ids.sandboxId}/stream`)
  await app.upstream.seen[1]!.gone
  const mine = await expectSameEverywhere(app, ids.threadId!, ids.sandboxId!, metadataOf(await app.frames(body)))
  expect(mine.calls).toBe(2)
  expect(app.calls()[1]!.status).toBe('aborted')
})

test('an engine that does not end after its cancel has spent what it has spent', async () => {
  const app = await chatApp()
  const { ids, body } = await app.chat('coder', 'DEAF STALL')
  while (app.upstream.seen.length < 1) await new Promise(setImmediate)
  await app.request('DELETE', `/v1/chat/coder/${ids.sandboxId}/stream`)
  await expectSameEverywhere(app, ids.threadId!, ids.sandboxId!, metadataOf(await app.frames(body)))
})

test('a run whose engine breaks tells what it used', async () => {
  const app = await chatApp()
  const { ids, body } = await app.chat('coder', 'THROW')
  await expectSameEverywhere(app, ids.threadId!, ids.sandboxId!, metadataOf(await app.frames(body)))
})

test('a run over its budget fails with the reason, and keeps what was said', async () => {
  const app = await chatApp({ prices: DOLLAR_A_TOKEN })
  app.agent('thrifty', { maxBudgetUsd: 30 })
  const { ids, body } = await app.chat('thrifty', 'one\ntwo\nthree')
  const frames = await app.frames(body)
  expect(frames.find(({ chunk }) => chunk.type === 'error')!.chunk.errorText).toBe(
    'budget_exceeded: The run has spent $50.00 of its $30.00.',
  )
  const thread = (await (
    await app.request('GET', `/v1/sandboxes/${ids.sandboxId}/threads/${ids.threadId}`)
  ).json()) as any
  expect(thread.status).toBe('error')
  expect(thread.messages[1].content).toContain('Hello from the fake model.')
  await expectSameEverywhere(app, ids.threadId!, ids.sandboxId!, metadataOf(frames))
})

test("a chat may lower its agent's bounds, and not raise them", async () => {
  const app = await chatApp()
  app.agent('bound', { maxTurns: 5, permissionMode: 'acceptEdits', disallowedTools: ['Bash'], maxBudgetUsd: 1 })
  const ask = async (options: object) => {
    await app.frames((await app.chat('bound', 'hi', { options })).body)
    return app.options.at(-1)
  }
  expect(await ask({})).toEqual({ maxTurns: 5, permissionMode: 'acceptEdits', disallowedTools: ['Bash'] })
  expect(await ask({ maxTurns: 9, permissionMode: 'bypassPermissions', disallowedTools: ['Write', 'Bash'] })).toEqual({
    maxTurns: 5,
    permissionMode: 'acceptEdits',
    disallowedTools: ['Bash', 'Write'],
  })
  expect(await ask({ maxTurns: 2, permissionMode: 'plan' })).toMatchObject({ maxTurns: 2, permissionMode: 'plan' })
  const before = app.upstream.seen.length
  const frames = await app.frames((await app.chat('bound', 'hi', { options: { maxBudgetUsd: 0 } })).body)
  expect(app.upstream.seen.length).toBe(before)
  expect(JSON.stringify(frames)).toContain('budget_exceeded')
})

test('a chat may name another model', async () => {
  const app = await chatApp()
  await app.frames((await app.chat('coder', 'hi', { options: { model: 'anthropic/claude-haiku-4-5' } })).body)
  expect(app.calls()).toMatchObject([{ model: 'claude-haiku-4-5' }])
  const frames = await app.frames((await app.chat('coder', 'hi', { options: { model: 'openrouter/x' } })).body)
  expect(JSON.stringify(frames)).toContain('set OPENROUTER_API_KEY')
})

test('usage is for keys of the team alone, in a span that is one', async () => {
  const app = await chatApp()
  await app.frames((await app.chat('coder', 'hi')).body)
  const ask = async (query: string, key?: string) => {
    const answer = await app.request('GET', `/v1/usage${query}`, undefined, key)
    return { status: answer.status, body: (await answer.json()) as any }
  }
  expect((await ask('')).body).toMatchObject({ groupBy: 'day', total: { calls: 1 } })
  expect((await ask('?from=2020-01-01&to=2020-02-01')).body.total.calls).toBe(0)
  const tomorrow = new Date(Date.now() + 86_400_000).toISOString()
  expect((await ask(`?from=${tomorrow.slice(0, 10)}`)).body.total.calls).toBe(0)
  expect((await ask(`?to=${tomorrow}`)).body.total.calls).toBe(1)
  for (const query of ['?groupBy=team', '?from=yesterday', '?to=1']) expect((await ask(query)).status).toBe(400)
  const token = (await (await app.request('POST', '/v1/tokens', {})).json()) as { token: string }
  expect((await ask('', token.token)).status).toBe(403)
})
