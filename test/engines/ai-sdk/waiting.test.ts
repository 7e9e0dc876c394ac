import { expect, test } from 'bun:test'
import type { CallAnswer, ClientTool, EngineContext, Permissions } from '../../../src/plugin-api/index.ts'
import { bash, openStage, type PlayInit } from './stage.ts'

const { model, play, shell } = openStage()

const asking: Permissions = {
  decide: (name, input) => {
    const { command = '' } = input as { command?: string }
    if (name !== 'Bash') return { decision: 'allow' }
    if (command.startsWith('rm')) return { decision: 'deny', reason: 'Nothing is removed here.' }
    return command.startsWith('touch') ? { decision: 'ask', reason: 'It changes something.' } : { decision: 'allow' }
  },
}
const clientTools: Record<string, ClientTool> = {
  pickColor: {
    description: 'Asks for a color.',
    inputSchema: { type: 'object', properties: { hue: { type: 'string' } } },
  },
}
const context: Partial<EngineContext> = { permissions: asking, clientTools }

const waits = (more: PlayInit = {}) => play({ context, ...more })

/** Goes on with a turn that waited. */
const goOn = (before: Awaited<ReturnType<typeof waits>>, answers: CallAnswer[], isLate = false) => {
  const reply = before.thread.at(-1)
  if (!reply) throw new Error('no reply')
  const history = isLate ? before.thread : []
  return waits({ history, turn: { continues: { reply, answers, isLate } } })
}

const call = (callId: string, input: object, name = 'Bash') => ({ callId, name, input })

test('a call that asks waits, and the others of its answer are executed first', async () => {
  model.play({ calls: [bash('touch /tmp/made', 'a'), bash('echo now', 'b'), bash('rm -rf /tmp', 'c')] })
  const first = await waits()
  expect(first.end).toEqual({ status: 'waiting' })
  expect(first.parts.map(({ state }) => state)).toEqual(['approval-requested', 'output-available', 'output-error'])
  expect(first.parts[0]).toMatchObject({ approval: { id: 'apr_a' }, providerExecuted: true })
  expect(first.parts[2]).toMatchObject({ errorText: 'Nothing is removed here.' })
  expect(first.events.filter(({ type }) => type === 'approval-request')).toEqual([
    { type: 'approval-request', callId: 'a', reason: 'It changes something.' },
  ])
  expect(await shell('ls /tmp')).toBe('')

  model.play({ text: 'Made.' })
  const second = await goOn(first, [{ ...call('a', { command: 'touch /tmp/made' }), type: 'approved' }])
  expect([second.end.status, second.text]).toEqual(['completed', 'Made.'])
  expect(second.events.slice(0, 2).map(({ type }) => type)).toEqual(['tool-begin', 'tool-result'])
  expect(second.parts[0]).toMatchObject({ state: 'output-available', approval: { id: 'apr_a', approved: true } })
  expect(second.parts).toHaveLength(4)
  expect(await shell('ls /tmp')).toBe('made\n')
  expect(model.requests[1]?.results).toHaveLength(3)
})

test('a denied call never runs, and the model learns the reason', async () => {
  model.play({ calls: [bash('touch /tmp/a', 'a'), bash('touch /tmp/b', 'b')] })
  const first = await waits()
  model.play({ text: 'Well.' })
  const second = await goOn(first, [
    { ...call('a', { command: 'touch /tmp/a' }), type: 'denied', reason: 'not today' },
    { ...call('b', { command: 'touch /tmp/b' }), type: 'approved' },
  ])
  expect(second.parts.slice(0, 2).map(({ state }) => state)).toEqual(['output-denied', 'output-available'])
  expect(await shell('ls /tmp')).toBe('b\n')
  expect(model.requests[1]?.results[0]).toContain('not today')
  model.play({ text: 'Later.' })
  await play({ history: second.thread })
  expect(JSON.stringify(model.requests[2]?.body.messages)).toContain('The user denied this call.')
})

test("a client's tool is offered, waits without the mark of the server's tools, and its output goes on", async () => {
  model.play({ calls: [{ name: 'pickColor', input: { hue: 'warm' }, id: 'p' }] })
  const first = await waits()
  expect(first.end).toEqual({ status: 'waiting' })
  expect(model.requests[0]?.tools).toContain('pickColor')
  expect(first.parts[0]).toEqual({
    type: 'tool-pickColor',
    toolCallId: 'p',
    state: 'input-available',
    input: { hue: 'warm' },
  })
  model.play({ text: 'Red it is.' })
  const answers: CallAnswer[] = [
    { ...call('p', { hue: 'warm' }, 'pickColor'), type: 'output', output: { color: 'red' } },
  ]
  const second = await goOn(first, answers)
  expect([second.end.status, second.text]).toEqual(['completed', 'Red it is.'])
  expect(model.requests[1]?.results).toEqual(['{"color":"red"}'])
})

test('a late answer runs as a new call of a new reply', async () => {
  model.play({ calls: [bash('touch /tmp/late', 'a')] })
  const first = await waits()
  model.play({ text: 'Later.' })
  const between = await waits({ history: first.thread })
  expect(model.requests[1]?.results[0]).toContain('waits for the user')
  model.play({ text: 'Done at last.' })
  const late = await goOn(
    { ...between, thread: [...between.thread, ...first.thread.slice(-1)] },
    [{ ...call('a', { command: 'touch /tmp/late' }), type: 'approved' }],
    true,
  )
  expect([late.end.status, late.text]).toEqual(['completed', 'Done at last.'])
  expect(late.parts.filter(({ type }) => type === 'tool-Bash')).toMatchObject([{ state: 'output-available' }])
  expect(await shell('ls /tmp')).toBe('late\n')
})

test('nothing that was approved runs after a cancel', async () => {
  model.play({ calls: [bash('touch /tmp/a', 'a')] })
  const first = await waits()
  const reply = first.thread.at(-1)
  if (!reply) throw new Error('no reply')
  const answers: CallAnswer[] = [{ ...call('a', { command: 'touch /tmp/a' }), type: 'approved' }]
  const signal = AbortSignal.abort()
  const second = await play({ context: { ...context, signal }, turn: { continues: { reply, answers, isLate: false } } })
  expect(second.end).toEqual({ status: 'cancelled' })
  expect(await shell('ls /tmp')).toBe('')
})
