import { beforeAll, describe, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { bash, metadataIn, useAgentServer } from '../support/agent-server.ts'
import { codeOf } from '../support/client.ts'
import type { ModelTurn } from '../support/model-server.ts'
import { command, temporaryDirectory } from '../support/server.ts'
import { eventsOf, textIn } from '../support/sse.ts'
import { until } from '../support/until.ts'

const { server, model, chat, said, threadOf } = useAgentServer()
/** Of each of the fake model's answers, at the price of the model: 120 in, 30 of the cache, 25 out. */
const callUsd = 0.000744
const step = (name: string): ModelTurn => ({ text: `${name}. `, calls: [bash(`echo ${name}`)] })
const steps = ['One', 'Two', 'Three', 'Four'].map(step)

const usage = async () => (await server.ask('GET', '/v1/usage')).body.total

beforeAll(async () => {
  const directory = temporaryDirectory()
  await Bun.write(
    join(directory, 'frugal.json'),
    JSON.stringify({
      ...{ slug: 'frugal', name: 'Frugal', engine: 'ai-sdk', model: 'anthropic/claude-sonnet-4-6' },
      options: { maxBudgetUsd: 1.5 * callUsd, maxTurns: 3, disallowedTools: ['WebFetch'], permissionMode: 'plan' },
    }),
  )
  const { code } = await command(['agents', 'apply', directory, '--data-dir', server.dataDirectory])
  expect(code).toBe(0)
  rmSync(directory, { recursive: true })
})

describe('a budget', () => {
  const cases = [
    { name: 'the chat', agent: 'coder', options: { maxBudgetUsd: 1.5 * callUsd } },
    { name: 'the sandbox, told by the chat', agent: 'coder', options: { maxSandboxBudgetUsd: 1.5 * callUsd } },
    { name: 'the agent', agent: 'frugal', options: {} },
    { name: 'the agent, which a chat cannot raise', agent: 'frugal', options: { maxBudgetUsd: 100 } },
  ]
  test.each(cases)('of $name ends the run, and what was said is kept', async ({ agent, options }) => {
    model.play(...steps)
    const before = model.requests.length
    const { chunks, ...place } = await said('Count.', { options }, agent)
    expect(model.requests.length - before).toBe(2)
    expect(textIn(chunks)).toBe('One. Two. ')
    const [metadata, error, finish] = chunks.slice(-3)
    expect(metadata.messageMetadata).toMatchObject({ inputTokens: 300, outputTokens: 50, totalCostUsd: 2 * callUsd })
    expect(error.errorText).toMatch(/^budget_exceeded: .*\$0\.0011/)
    expect([error.type, finish]).toEqual(['error', { type: 'finish' }])
    const thread = await threadOf(place)
    expect([thread.status, thread.error]).toEqual(['error', error.errorText])
    expect(thread.messages[1].content).toBe('One. Two. ')
  })

  test('of one chat does not bind the next', async () => {
    model.play(...steps)
    const { chunks, ...place } = await said('Count.', { options: { maxBudgetUsd: callUsd / 2 } })
    expect(textIn(chunks)).toBe('One. ')
    model.play({ text: 'Gladly.' })
    expect(textIn((await said('Go on.', place)).chunks)).toBe('Gladly.')
  })

  test('of nothing allows no call', async () => {
    const before = model.requests.length
    const { chunks } = await said('Count.', { options: { maxBudgetUsd: 0 } })
    expect([model.requests.length - before, chunks.at(-2).errorText]).toEqual([
      0,
      expect.stringContaining('budget_exceeded'),
    ])
  })
})

describe('a cancelled turn is metered', () => {
  const scenes: { name: string; turns: ModelTurn[]; at: (chunk: any) => boolean; output: [number, number] }[] = [
    {
      name: 'in a text',
      turns: [{ text: 'word '.repeat(500), everyMs: 5 }],
      at: ({ type }) => type === 'text-delta',
      output: [1, 25],
    },
    {
      name: 'in a tool',
      turns: [{ text: 'Now. ', calls: [bash('sleep 600')] }],
      at: ({ type }) => type === 'tool-input-available',
      output: [25, 25],
    },
  ]
  test.each(scenes)('$name', async ({ turns, at, output }) => {
    const before = await usage()
    model.play(...turns)
    const { response, ...place } = await chat('Go.')
    const chunks: any[] = []
    for await (const { data } of eventsOf(response)) {
      if (!chunks.some(at) && at(data)) void server.ask('DELETE', `/v1/chat/coder/${place.sandboxId}/stream`)
      chunks.push(data)
    }
    const { inputTokens, outputTokens, totalCostUsd } = metadataIn(chunks)
    expect(inputTokens).toBe(150)
    expect(outputTokens).toBeWithin(output[0], output[1] + 1)
    expect(totalCostUsd).toBeGreaterThan(0)
    const after = await usage()
    const grown = [after.calls - before.calls, after.inputTokens - before.inputTokens]
    expect([...grown, after.outputTokens - before.outputTokens]).toEqual([1, 150, outputTokens])
    expect(after.costUsd - before.costUsd).toBeCloseTo(totalCostUsd, 9)
    expect((await threadOf(place)).status).toBe('cancelled')
    await until(() => model.openCalls === 0)
  })
})

describe('the options of a chat', () => {
  const asked = async (options: object, agent?: string) => {
    model.play({ text: 'Yes.' })
    const { chunks } = await said('Go.', { options }, agent)
    return { request: model.requests.at(-1)!, metadata: metadataIn(chunks), chunks }
  }

  test('take tools away', async () => {
    const { request } = await asked({ disallowedTools: ['Bash', 'WebFetch'] })
    expect(request.tools).toEqual(['Read', 'Write', 'Edit', 'MultiEdit', 'Glob', 'Grep', 'LS', 'TodoWrite'])
  })

  test('cannot give back what the agent lacks', async () => {
    const { request } = await asked({ disallowedTools: ['LS'], permissionMode: 'bypassPermissions' }, 'frugal')
    expect(request.tools).toEqual(['Read', 'Glob', 'Grep', 'TodoWrite'])
  })

  test('name another model, with or without its provider', async () => {
    for (const name of ['claude-haiku-4-5', 'anthropic/claude-haiku-4-5']) {
      const { request, metadata } = await asked({ model: name })
      expect([request.body.model, metadata.model]).toEqual(['claude-haiku-4-5', 'anthropic/claude-haiku-4-5'])
      expect(metadata.totalCostUsd).toBeWithin(callUsd / 10, callUsd)
    }
  })

  test('add to the system prompt', async () => {
    const { request } = await asked({ systemPrompt: 'Answer in verse.' })
    expect(JSON.stringify(request.body.system)).toContain('Answer in verse.')
  })

  test('bound the turns', async () => {
    for (const [agent, maxTurns, text] of [
      ['coder', 2, 'One. Two. '],
      ['frugal', 1, 'One. '],
    ] as const) {
      model.play(...steps)
      const { chunks } = await said('Count.', { options: { maxTurns } }, agent)
      expect([textIn(chunks), chunks.at(-2).type]).toEqual([text, 'error'])
      expect(chunks.at(-2).errorText).toContain('maxTurns')
    }
  })

  const refused = [
    { options: { maxTurns: 0 }, told: 'maxTurns' },
    { options: { maxBudgetUsd: -1 }, told: 'maxBudgetUsd' },
    { options: { disallowedTools: 'Bash' }, told: 'disallowedTools' },
  ]
  test.each(refused)('are refused when wrong: $options', async ({ options, told }) => {
    const messages = [{ role: 'user', parts: [{ type: 'text', text: 'Go.' }] }]
    const answer = await server.ask('POST', '/v1/chat/coder', { messages, options })
    expect([codeOf(answer), answer.body.message]).toEqual(['400 invalid_request', expect.stringContaining(told)])
  })

  test.each([
    { name: 'nobody/some', told: 'nobody' },
    { name: 'openai/gpt-5.2', told: 'OPENAI_API_KEY' },
  ])('with a model that cannot be called, $name, are told in the stream', async ({ name, told }) => {
    const before = model.requests.length
    const { chunks } = await said('Go.', { options: { model: name } })
    expect(chunks.at(-2)).toEqual({ type: 'error', errorText: expect.stringContaining(told) })
    expect(model.requests).toHaveLength(before)
  })
})
