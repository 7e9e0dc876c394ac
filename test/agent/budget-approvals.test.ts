import { beforeAll, describe, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { bash, type Place, useAgentServer } from '../support/agent-server.ts'
import type { ModelTurn } from '../support/model-server.ts'
import { command, temporaryDirectory } from '../support/server.ts'
import { textIn } from '../support/sse.ts'
import { until } from '../support/until.ts'

const { server, model, said, threadOf } = useAgentServer()
/** Of each of the fake model's answers. */
const callUsd = 0.000744
const step = (name: string): ModelTurn => ({ text: `${name}. `, calls: [bash(`echo ${name} >> said`)] })
const steps = (): ModelTurn[] => [step('One'), step('Two'), step('Three'), { text: 'Four.' }]
const limitUsd = 1.5 * callUsd

const agents: Record<string, object> = {
  'asks-run': { maxBudgetUsd: limitUsd },
  'asks-sandbox': { maxSandboxBudgetUsd: limitUsd },
  'asks-agent': { maxAgentBudgetUsd: limitUsd },
}

beforeAll(async () => {
  const directory = temporaryDirectory()
  for (const [slug, budget] of Object.entries(agents)) {
    const options = { onBudget: 'ask', ...budget }
    const agent = { slug, name: slug, engine: 'ai-sdk', model: 'anthropic/claude-sonnet-4-6', options }
    await Bun.write(join(directory, `${slug}.json`), JSON.stringify(agent))
  }
  const { code } = await command(['agents', 'apply', directory, '--data-dir', server.dataDirectory])
  expect(code).toBe(0)
  rmSync(directory, { recursive: true })
})

const approvalsOf = async ({ threadId }: Place) =>
  (await server.ask('GET', `/v1/approvals?threadId=${threadId}`)).body.approvals
const answer = (id: string, body: object) => server.ask('POST', `/v1/approvals/${id}`, body)
const ended = (place: Place, status: string) => until(async () => (await threadOf(place)).status === status, status)

describe.each(Object.keys(agents))('the budget of %s', slug => {
  test('asks, names what it wants, and goes on with so much more', async () => {
    model.play(...steps())
    const { chunks, ...place } = await said('Count.', { stream: 'full' }, slug)
    expect(textIn(chunks)).toBe('One. Two. ')
    expect(chunks.at(-1)).toEqual({ type: 'finish', finishReason: 'tool-calls' })
    expect((await threadOf(place)).status).toBe('waiting')
    const [approval] = await approvalsOf(place)
    const [budget] = Object.keys(agents[slug]!)
    expect(approval).toMatchObject({ kind: 'budget', tool: 'Budget', status: 'pending' })
    expect(approval.input).toEqual({ budget, limitUsd, spentUsd: 2 * callUsd, moreUsd: limitUsd })

    await answer(approval.id, { approved: true })
    // Of as much more as it had, one call is left: then it asks again.
    await until(async () => (await approvalsOf(place)).length === 2, 'it went on')
    await ended(place, 'waiting')
    const { messages } = await threadOf(place)
    expect(messages).toHaveLength(2)
    const budgetParts = messages[1].parts.filter(({ type }: any) => type === 'tool-Budget')
    expect(budgetParts[0]).toMatchObject({ state: 'output-available', approval: { approved: true } })
    expect(JSON.stringify(model.requests.at(-1)?.body)).not.toContain('Budget')
    const [second] = await approvalsOf(place)
    expect(second.input).toEqual({ budget, limitUsd: 2 * limitUsd, spentUsd: 3 * callUsd, moreUsd: limitUsd })
    await answer(second.id, { approved: true })
    await ended(place, 'completed')
    expect((await threadOf(place)).messages[1].content).toBe('One. Two. Three. Four.')
  })

  test('that is denied ends the reply, and calls no model', async () => {
    model.play(...steps())
    const { chunks: _, ...place } = await said('Count.', { stream: 'full' }, slug)
    if ((await threadOf(place)).status === 'completed') throw new Error('it did not ask')
    const before = model.requests.length
    const [approval] = await approvalsOf(place)
    await answer(approval.id, { approved: false })
    await ended(place, 'error')
    expect((await threadOf(place)).error).toMatch(/^budget_exceeded: .* More was not approved\.$/)
    expect(model.requests.length).toBe(before)
    model.play()
  })
})
