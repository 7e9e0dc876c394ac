import { expect, test } from 'bun:test'
import { createKey } from '../../src/core/access/keys.ts'
import { decideApproval, insertApproval } from '../../src/db/approvals.ts'
import { listEvents } from '../../src/db/events.ts'
import { findTeam } from '../../src/db/teams.ts'
import type { OperatorBudgets } from '../../src/gateway/budgets.ts'
import type { AgentOptions } from '../../src/model/agent.ts'
import { cleanUpAfterEach } from '../runs/support.ts'
import { type ChatApp, chatApp } from './chat-app.ts'
import { DOLLAR_A_TOKEN } from './support.ts'

cleanUpAfterEach()

/** What a whole answer of the fake provider costs here. */
const ANSWER_USD = 25

const dear = (budgets: OperatorBudgets = {}) => chatApp({ prices: DOLLAR_A_TOKEN, budgets })

async function say(app: ChatApp, slug: string, text = 'hi', fields = {}) {
  const { ids, body } = await app.chat(slug, text, fields)
  await app.frames(body)
  return ids
}

const reached = (app: ChatApp, isToken = false) =>
  listEvents(app.db, { teamId: findTeam(app.db, 'default')!.id, after: 0, limit: 1000, isToken }).filter(
    ({ type }) => type === 'budget.reached',
  )

const budgetsOf = async (app: ChatApp, key?: string) =>
  ((await (await app.request('GET', '/v1/budgets', undefined, key)).json()) as any).budgets

const amounts = { limitUsd: 20, spentUsd: ANSWER_USD }
const cases: [string, OperatorBudgets, AgentOptions, object][] = [
  ['run', {}, { maxBudgetUsd: 20 }, amounts],
  ['sandbox', {}, { maxSandboxBudgetUsd: 20 }, amounts],
  ['agent', {}, { maxAgentBudgetUsd: 20 }, amounts],
  ['thread', { threadUsd: 20 }, {}, amounts],
  ['key', { keyDayUsd: 20 }, {}, { ...amounts, keyId: expect.stringMatching(/^key_/) }],
  ['server', { dayUsd: 20 }, {}, {}],
]

for (const [budget, operator, options, more] of cases) {
  test(`the call that uses the budget of a ${budget} up is told once, and to no token`, async () => {
    const app = await dear(operator)
    app.agent('bound', options)
    const { sandboxId, threadId } = await say(app, 'bound')
    await say(app, 'bound', 'again', { sandboxId, threadId })
    const events = reached(app)
    expect(events.map(({ data }) => data)).toEqual(
      budget === 'run'
        ? [expect.objectContaining(more), expect.objectContaining(more)]
        : [{ budget, sandboxId, threadId, runId: expect.stringMatching(/^run_/), agent: 'bound', ...more }],
    )
    expect(reached(app, true)).toEqual([])
  })
}

test('a budget that is not used up is not told', async () => {
  const app = await dear({ dayUsd: 26, threadUsd: 26, keyDayUsd: 26 })
  app.agent('bound', { maxBudgetUsd: 26, maxSandboxBudgetUsd: 26, maxAgentBudgetUsd: 26 })
  await say(app, 'bound')
  expect(reached(app)).toEqual([])
})

test('budgets are listed with what is spent of them, each for whom it holds', async () => {
  const app = await dear({ dayUsd: 1000, keyDayUsd: 500, threadUsd: 100 })
  app.agent('bound', { maxAgentBudgetUsd: 60, maxSandboxBudgetUsd: 50 })
  const first = await say(app, 'bound')
  await say(app, 'bound', 'more', first)
  const other = await say(app, 'coder')
  const budgets = await budgetsOf(app)
  const nothing = { id: null, name: null, sandboxId: null }
  expect(budgets).toEqual([
    { kind: 'server', ...nothing, limitUsd: 1000, spentUsd: 75 },
    { kind: 'key', id: expect.stringMatching(/^key_/), name: 'test', sandboxId: null, limitUsd: 500, spentUsd: 75 },
    { kind: 'agent', id: 'bound', name: 'bound', sandboxId: null, limitUsd: 60, spentUsd: 50 },
    { kind: 'sandbox', id: first.sandboxId, name: 'bound', sandboxId: null, limitUsd: 50, spentUsd: 50 },
    { kind: 'thread', id: first.threadId, name: 'hi', sandboxId: first.sandboxId, limitUsd: 100, spentUsd: 50 },
    { kind: 'thread', id: other.threadId, name: 'hi', sandboxId: other.sandboxId, limitUsd: 100, spentUsd: 25 },
  ])
  const { key } = createKey(app.db, { team: 'other', name: 'foreign' })
  expect(await budgetsOf(app, key)).toEqual([
    { kind: 'key', id: expect.stringMatching(/^key_/), name: 'foreign', sandboxId: null, limitUsd: 500, spentUsd: 0 },
  ])
})

test('what people have approved is a part of the limit', async () => {
  const app = await dear()
  app.agent('bound', { maxAgentBudgetUsd: 20, onBudget: 'ask' })
  const { sandboxId = '', threadId = '' } = await say(app, 'bound')
  const run = app.db.query<{ id: string }, []>('select id from runs').get()!
  insertApproval(app.db, {
    ...{ id: 'apr_1', teamId: findTeam(app.db, 'default')!.id, agentSlug: 'bound', sandboxId, threadId, runId: run.id },
    ...{ messageId: 'msg_1', toolCallId: 'budget-1', kind: 'budget', tool: 'Budget', expiresAt: '9999' },
    input: { budget: 'maxAgentBudgetUsd', moreUsd: 20 },
  })
  expect(await budgetsOf(app)).toContainEqual(expect.objectContaining({ kind: 'agent', id: 'bound', limitUsd: 20 }))
  decideApproval(app.db, 'apr_1', { status: 'approved' })
  expect(await budgetsOf(app)).toContainEqual(expect.objectContaining({ kind: 'agent', id: 'bound', limitUsd: 40 }))
})

test('a server without limits has no budgets', async () => {
  const app = await dear()
  await say(app, 'coder')
  expect(await budgetsOf(app)).toEqual([])
})

test('usage by thread and key has their names', async () => {
  const app = await dear()
  const { sandboxId, threadId } = await say(app, 'coder', 'A riddle')
  const groups = async (groupBy: string) =>
    ((await (await app.request('GET', `/v1/usage?groupBy=${groupBy}`)).json()) as any).groups
  expect(await groups('thread')).toEqual([expect.objectContaining({ key: threadId, name: 'A riddle', sandboxId })])
  expect(await groups('key')).toEqual([expect.objectContaining({ name: 'test', calls: 1 })])
  await app.request('DELETE', `/v1/sandboxes/${sandboxId}/threads/${threadId}`)
  expect(await groups('thread')).toEqual([expect.objectContaining({ key: threadId, name: null, sandboxId: null })])
})
