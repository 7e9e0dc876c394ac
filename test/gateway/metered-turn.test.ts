import { expect, test } from 'bun:test'
import { meteredTurn } from '../../src/core/chat/metered-turn.ts'
import type { GatewaySession } from '../../src/gateway/gateway.ts'
import type { EngineEnd, EngineEvent, ModelAccess } from '../../src/plugin-api/index.ts'

const used = { inputTokens: 1, outputTokens: 2, costUsd: 3, model: 'p/m' }
const text: EngineEvent = { type: 'text', id: 't', delta: 'x' }

/** A session with one call under way: what it used is known when it is closed. */
function session() {
  const state = { isClosed: false, left: [used] }
  const fake: GatewaySession = {
    access: {} as ModelAccess,
    refusal: undefined,
    takeUsage: () => (state.isClosed ? state.left.pop() : undefined),
    close: async () => {
      state.isClosed = true
    },
  }
  return { fake, state }
}

test('a cancel between two events of a deaf engine ends its calls and tells what they used', async () => {
  const { fake, state } = session()
  const abort = new AbortController()
  const turn = meteredTurn(
    () => fake,
    abort.signal,
    async function* (openModel) {
      openModel()
      yield text
      await new Promise(() => {})
      return { status: 'completed' }
    },
  )
  expect(await turn.next()).toEqual({ done: false, value: text })
  abort.abort()
  expect(await turn.next()).toEqual({ done: false, value: { type: 'usage', ...used } })
  expect(state.isClosed).toBe(true)
})

test('an engine that opens no model tells its own usage', async () => {
  const own: EngineEvent = { type: 'usage', inputTokens: 7, outputTokens: 8 }
  const turn = meteredTurn(
    () => session().fake,
    new AbortController().signal,
    async function* () {
      yield own
      return { status: 'completed' }
    },
  )
  expect((await turn.next()).value).toEqual(own)
  expect(await turn.next()).toEqual({ done: true, value: { status: 'completed' } })
})

test('no model is opened after a cancel', async () => {
  const abort = new AbortController()
  abort.abort()
  const opened: GatewaySession[] = []
  const open = () => {
    opened.push(session().fake)
    return session().fake
  }
  const turn = meteredTurn(open, abort.signal, async function* (openModel): AsyncGenerator<EngineEvent, EngineEnd> {
    yield* []
    openModel()
    return { status: 'completed' }
  })
  await expect(turn.next()).rejects.toThrow()
  expect(opened).toEqual([])
})

test('the session is closed however the turn is left', async () => {
  const { fake, state } = session()
  const turn = meteredTurn(
    () => fake,
    new AbortController().signal,
    async function* (openModel) {
      openModel()
      for (;;) yield text
    },
  )
  await turn.next()
  await turn.return({ status: 'cancelled' })
  expect(state.isClosed).toBe(true)
})
