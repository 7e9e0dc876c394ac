import { afterAll, describe, expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'
import { say, threadOf } from '../support/chat.ts'
import { type ModelCall, startModelServer } from '../support/model-server.ts'
import { readChunks } from '../support/sse.ts'
import { until } from '../support/until.ts'
import { approve } from '../support/waiting.ts'

const model = startModelServer()
afterAll(() => model.stop())
const app = useApp([], {
  ANTHROPIC_API_KEY: 'sk-ant-test',
  ANTHROPIC_BASE_URL: model.access('anthropic').baseUrl.replace(/\/v1$/, ''),
})

const bash = (command: string): ModelCall => ({ name: 'Bash', input: { command } })

const agent = (slug: string, options: object) =>
  app.agent(slug, {}, { engine: 'ai-sdk', model: 'anthropic/claude-sonnet-4-6', options })

const careful = (options: object = {}) => agent('careful', { approvals: 'on', ...options })

async function post(body: object, { slug = 'careful', key = app.key }: { slug?: string; key?: string } = {}) {
  const response = await app.request('POST', `/v1/chat/${slug}`, { body, key })
  const ids = {
    sandboxId: response.headers.get('x-sandbox-id') ?? '',
    threadId: response.headers.get('x-thread-id') ?? '',
  }
  if (response.status !== 200) return { ids, status: response.status, body: (await response.json()) as any, chunks: [] }
  return { ids, status: 200, body: undefined, chunks: (await readChunks(response)) as any[] }
}

/** A thread that waits for what these calls ask. */
async function ask(calls: ModelCall[], body: object = {}, slug = 'careful') {
  model.play({ calls })
  const { ids, status, body: error } = await post({ messages: [say('Go.')], stream: 'full', ...body }, { slug })
  if (status !== 200) throw new Error(JSON.stringify(error))
  const thread = () => threadOf(app, ids)
  const { approvals } = (await app.ask('GET', `/v1/approvals?threadId=${ids.threadId}`)).body
  return {
    ids,
    thread,
    approvals: approvals.toReversed() as any[],
    settles: (status = 'completed') => until(async () => (await thread()).status === status, status),
    files: () => app.shell(ids.sandboxId, 'ls /home/user'),
    answer: (approval: any, answer: object = { approved: true }, key = app.key) =>
      app.ask('POST', `/v1/approvals/${approval.id}`, answer, { key }),
    goOn: async (change: (part: any) => any, more: object = {}, key = app.key) => {
      const { messages } = await thread()
      const posted = messages.map((message: any, index: number) =>
        index === messages.length - 1 ? { ...message, parts: message.parts.map(change) } : message,
      )
      return post({ ...ids, messages: posted, ...more }, { slug, key })
    },
  }
}

describe('who goes on after an approval', () => {
  test('keeps the rules of the agent that asked, in a sandbox of another agent regression', async () => {
    careful()
    agent('free', {})
    const { body: sandbox } = await app.ask('POST', '/v1/sandboxes', { agent: 'free' })
    const { ids, approvals, answer, files, thread } = await ask([bash('touch one')], { sandboxId: sandbox.id })
    model.play({ calls: [bash('touch two')] }, { text: 'Done.' })
    await answer(approvals[0])
    const asked = async () =>
      (await app.ask('GET', `/v1/approvals?status=pending&threadId=${ids.threadId}`)).body.approvals
    await until(async () => (await asked()).length === 1 || (await thread()).status === 'completed')
    expect(await files()).toBe('one\n')
    expect(await asked()).toMatchObject([{ agent: 'careful', input: { command: 'touch two' } }])
  })

  test('keeps the rules of the chat that asked, whatever the one that answers says regression', async () => {
    careful({ approvals: 'on', allow: ['Bash(touch:*)'] })
    const rules = { options: { deny: ['Bash(touch two:*)'], ask: ['Bash(touch one:*)'], permissionMode: 'default' } }
    const { goOn, files } = await ask([bash('touch one')], rules)
    model.play({ calls: [bash('touch two')] }, { text: 'Done.' })
    const options = { deny: [], ask: [], allow: ['*'], permissionMode: 'bypassPermissions' }
    await goOn(approve(), { options })
    expect(await files()).toBe('one\n')
  })

  test('runs nothing that the agent has denied meanwhile regression', async () => {
    careful()
    const { approvals, answer, settles, files } = await ask([bash('touch one')])
    careful({ deny: ['Bash(touch:*)'] })
    model.play({ text: 'Done.' })
    await answer(approvals[0])
    await settles()
    expect(await files()).toBe('')
  })

  test('runs nothing late that the agent has denied meanwhile regression', async () => {
    careful()
    const { ids, approvals, answer, settles, files, thread } = await ask([bash('touch one')])
    model.play({ text: 'Hello.' })
    await post({ ...ids, messages: [say('Wait.')] })
    careful({ deny: ['Bash(touch:*)'] })
    model.play({ text: 'Done.' })
    await answer(approvals[0])
    await settles()
    await until(async () => (await thread()).messages.length > 4)
    expect(await files()).toBe('')
  })

  test('runs nothing when the agent has an engine by now that asks nobody', async () => {
    careful()
    const { approvals, answer, settles, files, thread } = await ask([bash('touch one')])
    app.agent('careful', {}, { engine: 'echo' })
    expect((await answer(approvals[0])).status).toBe(200)
    await settles('error')
    expect((await thread()).messages[1].parts.at(-1)).toMatchObject({ state: 'output-error' })
    expect(await files()).toBe('')
  })
})

describe('an answer by chat', () => {
  test('comes too late after the time that the agent gives regression', async () => {
    careful({ approvalTimeoutMs: 1 })
    const { goOn, files } = await ask([bash('touch one')])
    const { status, body } = await goOn(approve())
    expect([status, body.error.code]).toEqual([409, 'nothing_to_continue'])
    expect(await files()).toBe('')
  })

  test('has no longer reason than one by API', async () => {
    careful()
    const { goOn, thread } = await ask([bash('touch one')])
    const { status, body } = await goOn(approve(false, 'x'.repeat(1001)))
    expect([status, body.error.code]).toEqual([400, 'invalid_request'])
    expect((await thread()).status).toBe('waiting')
    model.play({ text: 'Done.' })
    expect((await goOn(approve(false, 'x'.repeat(1000)))).status).toBe(200)
  })
})

test.each([
  ['contract', []],
  ['full', []],
  ['ai-7', ['tool-approval-request', 'tool-approval-response']],
] as const)('a client that resumes with %s while an approved call runs is asked nothing', async (stream, expected) => {
  careful()
  const { ids, approvals, answer, settles } = await ask([bash('touch one')], { stream })
  const gate = Promise.withResolvers<void>()
  model.play(() => gate.promise.then(() => ({ text: 'Done.' })))
  await answer(approvals[0])
  const resumed = await app.request('GET', `/v1/chat/careful/${ids.sandboxId}/stream`)
  gate.resolve()
  const types = (await readChunks(resumed)).map(({ type }: any) => type as string)
  expect(types.filter(type => type.includes('approval'))).toEqual([...expected])
  expect(types).toContain('tool-output-available')
  await settles()
})
