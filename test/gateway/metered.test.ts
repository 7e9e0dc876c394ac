import { expect, test } from 'bun:test'
import { createLazySession } from '../../src/core/chat/lazy-session.ts'
import { metered } from '../../src/core/chat/metered.ts'
import type { BudgetRefusal } from '../../src/gateway/budgets.ts'
import type { GatewaySession } from '../../src/gateway/gateway.ts'
import type { EngineEnd, EngineEvent, ModelAccess } from '../../src/plugin-api/index.ts'

const used = { inputTokens: 1, outputTokens: 2, costUsd: 3, model: 'p/m' }
const text: EngineEvent = { type: 'text', id: 't', delta: 'x' }
type Events = AsyncGenerator<EngineEvent, EngineEnd>

/** A model whose session has one call under way: what that used is known when it is closed. */
function fakeModel(signal: AbortSignal, refusal?: BudgetRefusal) {
  const state = { openCount: 0, isClosed: false, left: [used] }
  const session: GatewaySession = {
    access: {} as ModelAccess,
    refusal,
    takeUsage: () => (state.isClosed ? state.left.pop() : undefined),
    close: async () => {
      state.isClosed = true
    },
  }
  const open = () => {
    state.openCount += 1
    return session
  }
  return { model: createLazySession(open, signal), state }
}

const never = new AbortController().signal

test('a cancel between two events of a deaf engine ends its calls and tells what they used', async () => {
  const abort = new AbortController()
  const { model, state } = fakeModel(abort.signal)
  async function* deaf(): Events {
    model.access()
    yield text
    await new Promise(() => {})
    return { status: 'completed' }
  }
  const turn = metered(deaf(), model, abort.signal)
  expect(await turn.next()).toEqual({ done: false, value: text })
  abort.abort()
  expect(await turn.next()).toEqual({ done: false, value: { type: 'usage', ...used } })
  expect(state.isClosed).toBe(true)
})

test('an engine that opens no model tells its own usage', async () => {
  const own: EngineEvent = { type: 'usage', inputTokens: 7, outputTokens: 8 }
  const { model, state } = fakeModel(never)
  async function* free(): Events {
    yield own
    return { status: 'completed' }
  }
  const turn = metered(free(), model, never)
  expect((await turn.next()).value).toEqual(own)
  expect(await turn.next()).toEqual({ done: true, value: { status: 'completed' } })
  expect(state).toMatchObject({ openCount: 0, isClosed: false })
})

test('a model is opened once, however often the engine asks', () => {
  const { model, state } = fakeModel(never)
  expect(model.access()).toBe(model.access())
  expect(state.openCount).toBe(1)
})

test('no model is opened after a cancel', async () => {
  const abort = new AbortController()
  abort.abort()
  const { model, state } = fakeModel(abort.signal)
  async function* late(): Events {
    yield* []
    model.access()
    return { status: 'completed' }
  }
  await expect(metered(late(), model, abort.signal).next()).rejects.toThrow()
  expect(state.openCount).toBe(0)
})

test('the session is closed however the turn is left', async () => {
  const { model, state } = fakeModel(never)
  async function* endless(): Events {
    model.access()
    for (;;) yield text
  }
  const turn = metered(endless(), model, never)
  await turn.next()
  await turn.return({ status: 'cancelled' })
  expect(state.isClosed).toBe(true)
})

const spent: BudgetRefusal = { reason: 'spent', budget: 'maxSandboxBudgetUsd', limitUsd: 2, spentUsd: 3 }

test('a turn to which a budget refused a call has failed, unless it was cancelled', async () => {
  for (const [status, expected] of [
    ['completed', 'failed'],
    ['cancelled', 'cancelled'],
  ] as const) {
    const { model } = fakeModel(never, spent)
    async function* refused(): Events {
      yield text
      model.access()
      return { status }
    }
    const turn = metered(refused(), model, never)
    await turn.next()
    await turn.next()
    expect((await turn.next()).value).toMatchObject({ status: expected })
  }
})

test('a turn that may ask waits for more of a budget that can be raised, and fails for any other', async () => {
  const { budget: _, ...ofOperator } = spent
  const input = { budget: 'maxSandboxBudgetUsd', limitUsd: 2, spentUsd: 3, moreUsd: 2 }
  for (const [refusal, maxSandboxBudgetUsd, events, status] of [
    [spent, 2, ['tool-call', 'approval-request'], 'waiting'],
    [ofOperator, 2, [], 'failed'],
    [spent, 0, [], 'failed'],
  ] as const) {
    const { model } = fakeModel(never, refusal)
    async function* refused(): Events {
      yield* []
      model.access()
      return { status: 'failed' }
    }
    const turn = metered(refused(), model, never, { callId: 'budget-1', budgets: { maxSandboxBudgetUsd } })
    const seen: EngineEvent[] = []
    let step = await turn.next()
    for (; !step.done; step = await turn.next()) if (step.value.type !== 'usage') seen.push(step.value)
    expect(seen.map(({ type }) => type)).toEqual([...events])
    if (seen[0]) expect(seen[0]).toEqual({ type: 'tool-call', callId: 'budget-1', name: 'Budget', input })
    expect(step.value.status).toBe(status)
  }
})
