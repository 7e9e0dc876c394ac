import { describe, expect, test } from 'bun:test'
import type { OperatorBudgets, RunBudgets } from '../../src/gateway/budgets.ts'
import type { GatewayRun } from '../../src/gateway/run.ts'
import { cleanUpAfterEach } from '../runs/support.ts'
import { call, DOLLAR_A_TOKEN, gatewayScene, wireCases } from './support.ts'

cleanUpAfterEach()

const anthropic = wireCases[0]!
/** What a whole answer of the fake provider costs here. */
const ANSWER_USD = 25

test('a call over the budget is refused with the reason, and nothing goes out', async () => {
  const { open, upstream, log } = gatewayScene({ prices: DOLLAR_A_TOKEN })
  const session = open({ budgets: { maxBudgetUsd: ANSWER_USD } })
  expect((await (await call(session, anthropic, 'hi')).text()).length).toBeGreaterThan(0)
  expect(session.refusal).toBeUndefined()
  const answer = await call(session, anthropic, 'hi')
  expect(answer.status).toBe(402)
  expect(answer.headers.get('x-should-retry')).toBe('false')
  const reason = 'budget_exceeded: The run has spent $25.00 of its $25.00.'
  expect(await answer.json()).toEqual({ type: 'error', error: { type: 'billing_error', message: reason } })
  expect(session.refusal).toEqual({
    ...{ reason: 'The run has spent $25.00 of its $25.00.', budget: 'maxBudgetUsd' },
    ...{ limitUsd: ANSWER_USD, spentUsd: ANSWER_USD },
  })
  expect(upstream.seen.length).toBe(1)
  expect(log).toContain(`run_1: ${reason}`)
})

describe('each budget counts its own', () => {
  const cases: [string, RunBudgets, OperatorBudgets, Partial<GatewayRun>, Partial<GatewayRun>][] = [
    ['run', { maxBudgetUsd: 20 }, {}, {}, { runId: 'run_2' }],
    ['sandbox', { maxSandboxBudgetUsd: 20 }, {}, { runId: 'run_2', threadId: 'thr_2' }, { sandboxId: 'sbx_2' }],
    ['agent', { maxAgentBudgetUsd: 20 }, {}, { runId: 'run_2', sandboxId: 'sbx_2' }, { agentSlug: 'other' }],
    ['thread', {}, { threadUsd: 20 }, { runId: 'run_2' }, { threadId: 'thr_2' }],
    ['API key', {}, { keyDayUsd: 20 }, { runId: 'run_2', threadId: 'thr_2' }, { keyId: 'key_2' }],
    ['server', {}, { dayUsd: 20 }, { keyId: 'key_2', sandboxId: 'sbx_2', agentSlug: 'other' }, {}],
  ]
  for (const [owner, budgets, operator, same, other] of cases) {
    test(owner, async () => {
      const { open } = gatewayScene({ prices: DOLLAR_A_TOKEN, budgets: operator })
      await (await call(open({ budgets }), anthropic, 'hi')).text()
      const refused = await call(open({ budgets, ...same }), anthropic, 'hi')
      expect(await refused.text()).toContain(`The ${owner} has spent $25.00 of its $20.00.`)
      expect(refused.status).toBe(402)
      const another = await call(open({ budgets, ...other }), anthropic, 'hi')
      expect(another.status).toBe(Object.keys(other).length > 0 ? 200 : 402)
      await another.text()
    })
  }
})

test('the operator means no limit by 0, an agent means nothing at all', async () => {
  const { open } = gatewayScene({ budgets: { dayUsd: 0, threadUsd: 0, keyDayUsd: 0 } })
  expect((await call(open(), anthropic, 'hi')).status).toBe(200)
  expect((await call(open({ budgets: { maxBudgetUsd: 0 } }), anthropic, 'hi')).status).toBe(402)
})

test('of two concurrent calls the one that may be too much waits, and is refused when it is', async () => {
  const { open, upstream, calls } = gatewayScene({ prices: DOLLAR_A_TOKEN })
  const session = open({ budgets: { maxBudgetUsd: ANSWER_USD } })
  const [first, second] = [call(session, anthropic, 'hi'), call(session, anthropic, 'hi')]
  const answer = await first
  expect(upstream.seen.length).toBe(1)
  await answer.text()
  expect((await second).status).toBe(402)
  expect(calls().length).toBe(1)
})

test('a call that waited goes when those before it cost little', async () => {
  const { open, upstream } = gatewayScene({ prices: DOLLAR_A_TOKEN })
  const session = open({ budgets: { maxBudgetUsd: 90 } })
  const answers = await Promise.all([1, 2, 3].map(async () => (await call(session, anthropic, 'hi')).text()))
  expect(answers.every(text => text.includes('message_stop'))).toBe(true)
  expect(upstream.seen.length).toBe(3)
})

test('a call that waits for a budget ends with its run', async () => {
  const { open, upstream } = gatewayScene({ prices: DOLLAR_A_TOKEN })
  const session = open({ budgets: { maxBudgetUsd: 10 } })
  const stalled = await call(session, anthropic, 'STALL')
  const waiting = call(session, anthropic, 'hi')
  await session.close()
  expect((await waiting).status).toBe(401)
  expect(upstream.seen.length).toBe(1)
  await stalled.body!.cancel().catch(() => {})
})

test('what a cut-off call cost counts towards the budget', async () => {
  const { open } = gatewayScene({ prices: DOLLAR_A_TOKEN })
  const session = open({ budgets: { maxBudgetUsd: 4 } })
  await expect((await call(session, anthropic, 'CUT')).text()).rejects.toThrow()
  expect((await call(session, anthropic, 'hi')).status).toBe(402)
})
