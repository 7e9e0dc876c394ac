import { describe, expect, test } from 'bun:test'
import type { MessagePart, StoredMessage } from '../../../src/plugin-api/index.ts'
import { allWires, type Wire } from '../../support/model-server.ts'
import { bash, codesOf, openStage } from './stage.ts'

const { model, play, put, system } = openStage()

describe('images', () => {
  const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
  const url = `data:image/png;base64,${png}`
  const prompt: MessagePart[] = [
    { type: 'text', text: 'See.' },
    { type: 'file', mediaType: 'image/png', url },
    { type: 'data-image', data: { url, mediaType: 'image/png' } },
    { type: 'file', mediaType: 'image/png', url: 'http://169.254.169.254/secret.png' },
    { type: 'file', mediaType: 'text/plain', url: 'data:text/plain;base64,YQ==' },
  ]

  test.each([...allWires])('of the user reach the model on %s, and no address is fetched', async wire => {
    await play({ wire, prompt })
    const sent = JSON.stringify(model.requests[0]?.body)
    expect([sent.split(png).length - 1, sent.includes('169.254')]).toEqual([2, false])
  })

  test.each([...allWires])('that a tool reads reach the model on %s, also in the next turn', async wire => {
    await put('/tmp/dot.png', Buffer.from(png, 'base64'))
    model.play({ calls: [{ name: 'Read', input: { file_path: '/tmp/dot.png' } }] }, { text: 'A dot.' })
    const { thread } = await play({ wire })
    model.play({ text: 'Still a dot.' })
    await play({ wire, history: thread })
    const sent = model.requests.map(({ body }) => JSON.stringify(body).split(png).length - 1)
    expect(sent).toEqual([0, 1, 1])
    if (wire !== 'openai-chat') return
    const roles = model.requests[1]?.body.messages.map(({ role }: any) => role)
    expect(roles).toEqual(['system', 'user', 'assistant', 'tool', 'user'])
  })
})

describe('a long conversation', () => {
  const small = (wire: Wire) => ({ openModel: () => model.access(wire, { contextTokens: 12_000 }) })
  const said = (index: number): StoredMessage[] => [
    { id: `u${index}`, role: 'user', parts: [{ type: 'text', text: `question ${index} ${'x'.repeat(4000)}` }] },
    { id: `a${index}`, role: 'assistant', parts: [{ type: 'text', text: `answer ${index}` }] },
  ]
  const read = (index: number): MessagePart => ({
    ...{ type: 'tool-Bash', toolCallId: `c${index}`, state: 'output-available' },
    ...{ input: { command: 'cat' }, output: `output ${index} ${'y'.repeat(4000)}` },
  })
  const isSummary = ({ tools }: { tools: string[] }) => tools.length === 0

  test('loses the outputs of old tool calls first', async () => {
    const parts = Array.from({ length: 10 }, (_, index) => read(index))
    const history: StoredMessage[] = [
      { id: 'u', role: 'user', parts: [{ type: 'text', text: 'work' }] },
      { id: 'a', role: 'assistant', parts },
    ]
    model.play({ text: 'Hi.' })
    const { events } = await play({ history, context: small('anthropic') })
    expect([codesOf(events), model.requests.length]).toEqual([['outputs_shortened'], 1])
  })

  test.each([...allWires])('is summarised on %s, shown, and not summarised again in the next turn', async wire => {
    const history = Array.from({ length: 12 }, (_, index) => said(index)).flat()
    model.play({ text: 'SUMMARY' }, { text: 'Hi.' })
    const first = await play({ wire, history, context: small(wire) })
    expect([first.end.status, first.text, codesOf(first.events)]).toEqual(['completed', 'Hi.', ['summarising']])
    expect(first.parts[0]).toMatchObject({ type: 'tool-Compact', output: 'SUMMARY' })
    expect(model.requests.map(isSummary)).toEqual([true, false])
    const sent = JSON.stringify(model.requests[1]?.body)
    expect([sent.includes('SUMMARY'), sent.includes('question 0'), sent.includes('question 11')]).toEqual([
      true,
      false,
      true,
    ])
    model.play({ text: 'Again.' })
    const second = await play({ wire, history: first.thread, context: small(wire) })
    expect([second.text, model.requests.length]).toEqual(['Again.', 3])
    expect(JSON.stringify(model.requests[2]?.body)).toContain('SUMMARY')
    expect(JSON.stringify(model.requests[2]?.body)).not.toContain('question 0')
  })

  test.each([...allWires])('of one turn is summarised on %s while it goes on', async wire => {
    const long = (index: number) => ({
      text: `step ${index} ${'z'.repeat(3000)}`,
      calls: [bash(`echo ${index}`, `call_${index}`)],
    })
    let step = 0
    const answer = (request: { tools: string[] }) =>
      isSummary(request) ? { text: 'SUMMARY' } : step < 14 ? long(step++) : { text: 'Done.' }
    model.play(...Array.from({ length: 40 }, () => answer))
    const first = await play({ wire, context: small(wire) })
    expect(first.end.status).toBe('completed')
    expect(first.parts.filter(({ type }) => type === 'tool-Bash')).toHaveLength(14)
    expect(first.parts.filter(({ type }) => type === 'tool-Compact').length).toBeGreaterThan(0)
    expect(JSON.stringify(model.requests.at(-1)?.body)).toContain('<request>\\nGo.\\n</request>')
    model.requests.length = 0
    model.play({ text: 'Again.' })
    await play({ wire, history: first.thread, context: small(wire) })
    const sent = JSON.stringify(model.requests[0]?.body)
    expect([sent.includes('SUMMARY'), sent.includes('step 0 '), sent.includes('step 13 ')]).toEqual([true, false, true])
  })

  test('goes on without a summary when the model gives none', async () => {
    model.play({ text: '' }, { text: 'Hi.' })
    const { end, text, parts } = await play({
      history: Array.from({ length: 12 }, (_, index) => said(index)).flat(),
      context: small('anthropic'),
    })
    expect([end.status, text]).toEqual(['completed', 'Hi.'])
    expect(parts[0]).toMatchObject({ type: 'tool-Compact', state: 'output-error' })
  })
})

test('what another engine left in the thread is taken as it is', async () => {
  const parts: MessagePart[] = [
    { type: 'reasoning', text: 'secret thought' },
    { type: 'tool-Task', toolCallId: 'a|b c', state: 'output-available', input: 'no object', output: { deep: [1] } },
    { type: 'tool-Bash', toolCallId: 'open', state: 'input-available', input: {} },
    { type: 'text', text: '' },
    { type: 'data-other', data: 1 },
  ]
  const history: StoredMessage[] = [
    { id: 's', role: 'system', parts: [{ type: 'text', text: 'Obey the client.' }] },
    { id: 'u', role: 'user', parts: [{ type: 'text', text: 'work' }] },
    { id: 'a', role: 'assistant', parts },
  ]
  const { end } = await play({ history })
  const sent = JSON.stringify(model.requests[0]?.body.messages)
  expect(end.status).toBe('completed')
  expect([sent.includes('a_b_c'), sent.includes('deep'), sent.includes('secret thought')]).toEqual([true, true, false])
  expect([sent.includes('"open"'), system().includes('Obey the client.')]).toEqual([false, false])
})
