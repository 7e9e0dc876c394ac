import { describe, expect, test } from 'bun:test'
import { createCallIds } from '../../../plugins/ai-sdk/model/call-ids.ts'
import { openModel, systemMessage } from '../../../plugins/ai-sdk/model/model.ts'
import { callModel, type ModelAnswer } from '../../../plugins/ai-sdk/model/model-call.ts'
import type { EngineEvent } from '../../../src/plugin-api/index.ts'
import { allWires, countEvents, type ModelTurn, startModelServer, type Wire } from '../../support/model-server.ts'

const CUT = "The model's stream ended before its reply was complete."

/** Events after the one that ends an answer. */
const afterEnd: Record<Wire, number> = { anthropic: 0, 'openai-responses': 0, 'openai-chat': 2 }

const turns: [string, ModelTurn & { endsAfter?: number }][] = [
  ['a text', { text: 'One two three, four five six.' }],
  ['a text with its reasoning', { reasoning: 'Let me think of it.', text: 'Here it is.' }],
  ['tool calls', { text: 'I look.', calls: [{ name: 'Bash', input: { command: 'ls' } }, { name: 'Bash' }] }],
]

/** What comes of one call whose stream is cut, and whose next ones are whole. */
async function ask(wire: Wire, turn: ModelTurn) {
  const server = startModelServer()
  try {
    server.play(turn, { text: 'At last.' })
    const model = openModel(server.access(wire))
    const answering = callModel({
      model,
      system: systemMessage(model, 'Help.'),
      messages: [{ role: 'user', content: 'Hi.' }],
      tools: {},
      signal: new AbortController().signal,
      stallMs: 30_000,
      callIds: createCallIds([]),
    })
    const events: EngineEvent[] = []
    let step = await answering.next()
    for (; !step.done; step = await answering.next()) events.push(step.value)
    return { events, answer: step.value, requests: server.requests.length }
  } finally {
    await server.stop()
  }
}

const isNotice = ({ type }: EngineEvent) => type === 'notice'
const saidBy = (events: EngineEvent[]) => events.filter(event => !isNotice(event) && event.type !== 'part-end')

function expectCut({ events, answer, requests }: Awaited<ReturnType<typeof ask>>): void {
  if (answer.status === 'ended') {
    expect(answer.end).toEqual({ status: 'failed', error: { code: 'model_failed', message: CUT } })
    expect(saidBy(events).length).toBeGreaterThan(0)
    expect(requests).toBe(1)
    return
  }
  // Nothing was shown of the first one: what is shown is the second's.
  const text = events.map(event => (event.type === 'text' ? event.delta : '')).join('')
  expect([text, requests]).toEqual(['At last.', 2])
  const [first, ...more] = events
  expect(first).toMatchObject({ type: 'notice', code: 'model_retry', text: `${CUT} Trying again in 1 s.` })
  expect(more.some(isNotice)).toBe(false)
}

for (const wire of allWires) {
  describe.each(turns)(`a stream of ${wire} with %s`, (_, turn) => {
    test('that ends before its last event, or in the middle of one, is no answer', async () => {
      const last = (await countEvents(wire, turn)) - afterEnd[wire]
      const places = Array.from({ length: last * 2 }, (_, index) => index / 2)
      const all = await Promise.all(places.map(endsAfter => ask(wire, { ...turn, endsAfter })))
      for (const each of all) expectCut(each)
      const ends = all.map(({ answer }: { answer: ModelAnswer }) => answer.status)
      expect([ends.includes('answered'), ends.includes('ended')]).toEqual([true, true])
    })

    test('that ends after it is one', async () => {
      const last = (await countEvents(wire, turn)) - afterEnd[wire]
      const { answer, requests } = await ask(wire, { ...turn, endsAfter: last })
      expect([answer.status, requests]).toEqual(['answered', 1])
    })
  })
}
