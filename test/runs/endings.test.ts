import { describe, expect, test } from 'bun:test'
import { listMessages } from '../../src/db/messages.ts'
import { findRun } from '../../src/db/runs.ts'
import { findThread, threadUsage } from '../../src/db/threads.ts'
import { ApiError } from '../../src/errors.ts'
import { streamOf } from '../../src/stream/feed.ts'
import type { RunEvent } from '../../src/stream/run-event.ts'
import { cleanUpAfterEach, type Puppet, puppet, read, scene, text, typesOf } from './support.ts'

cleanUpAfterEach()

const bash: RunEvent = { type: 'tool-call', callId: 'c', name: 'Bash', input: { command: 'sleep 9' } }

interface Scenario {
  name: string
  before?: RunEvent[]
  end: (engine: Puppet, cancel: () => unknown) => unknown
  /** The types after `start`. */
  types: string[]
  run: string
  thread: string
  error?: RegExp
}

const said = ['text-start', 'text-delta', 'text-end']
const scenarios: Scenario[] = [
  {
    name: 'completed',
    before: [text('Hi')],
    end: engine => engine.end(),
    types: [...said, 'message-metadata', 'finish'],
    run: 'completed',
    thread: 'completed',
  },
  {
    name: 'completed without a word',
    end: engine => engine.end(),
    types: ['message-metadata', 'finish'],
    run: 'completed',
    thread: 'completed',
  },
  {
    name: 'cancelled during text',
    before: [text('Hi')],
    end: (_, cancel) => cancel(),
    types: [...said, 'message-metadata', 'abort', 'finish'],
    run: 'cancelled',
    thread: 'cancelled',
  },
  {
    name: 'cancelled during a tool',
    before: [text('Hi'), bash],
    end: (_, cancel) => cancel(),
    types: [
      ...said,
      'tool-input-start',
      'tool-input-available',
      'tool-output-error',
      'message-metadata',
      'abort',
      'finish',
    ],
    run: 'cancelled',
    thread: 'cancelled',
  },
  {
    name: 'cancelled by its engine',
    before: [text('Hi')],
    end: engine => engine.end({ status: 'cancelled' }),
    types: [...said, 'message-metadata', 'abort', 'finish'],
    run: 'cancelled',
    thread: 'cancelled',
  },
  {
    name: 'failed with a reason',
    before: [text('Hi')],
    end: engine =>
      engine.end({ status: 'failed', error: { code: 'budget_exceeded', message: 'The budget is spent.' } }),
    types: [...said, 'message-metadata', 'error', 'finish'],
    run: 'failed',
    thread: 'error',
    error: /^The budget is spent\.$/,
  },
  {
    name: 'failed by an error a caller may see',
    end: engine => engine.throw(new ApiError('sandbox_unavailable', 'The sandbox is gone.')),
    types: ['message-metadata', 'error', 'finish'],
    run: 'failed',
    thread: 'error',
    error: /^The sandbox is gone\.$/,
  },
  {
    name: 'failed by an unknown error',
    before: [text('Hi')],
    end: engine => engine.throw(new Error('secret')),
    types: [...said, 'message-metadata', 'error', 'finish'],
    run: 'failed',
    thread: 'error',
    error: /^The agent failed unexpectedly \(run_.*\)\.$/,
  },
]

describe('a run ends', () => {
  for (const { name, before = [], end, types, ...expected } of scenarios)
    test(name, async () => {
      const { db, runs, init, sandbox, thread } = scene()
      const engine = puppet()
      const run = runs.start(init, engine.execute)
      const body = streamOf(runs.watch(run).feed)
      expect(findThread(db, sandbox.id, thread.id)).toMatchObject({ status: 'streaming', completedAt: null })
      engine.say(...before)
      await engine.taken()
      end(engine, () => run.cancel())
      const reading = await read(body)
      expect(typesOf(reading)).toEqual(['start', ...types])
      expect(reading.done).toBe(true)
      expect(reading.comments).toEqual([': open'])
      expect(reading.frames.map(({ id }) => id)).toEqual(reading.frames.map((_, index) => `${run.id}/${index + 1}`))
      expect(findRun(db, run.id)).toMatchObject({ status: expected.run as 'failed', endedAt: expect.any(String) })
      const stored = findThread(db, sandbox.id, thread.id)
      expect(stored).toMatchObject({ status: expected.thread, completedAt: expect.any(String) })
      if (expected.error) expect(stored?.error).toMatch(expected.error)
      else expect(stored?.error).toBeNull()
      const shown = reading.frames.find(({ chunk }) => chunk.type === 'error')?.chunk.errorText
      expect(shown ?? null).toBe(stored?.error ?? null)
      expect(listMessages(db, thread.id)).toHaveLength(before.length > 0 ? 1 : 0)
      expect(runs.activeOn(thread.id)).toBeUndefined()
      expect(engine.returned).toBe(true)
    })
})

test('a cancelled tool says so', async () => {
  const { runs, init } = scene()
  const engine = puppet()
  const run = runs.start(init, engine.execute)
  engine.say(bash)
  await engine.taken()
  await run.cancel()
  const { frames } = await read(streamOf(runs.watch(run).feed))
  expect(frames.find(({ chunk }) => chunk.type === 'tool-output-error')?.chunk).toEqual({
    type: 'tool-output-error',
    toolCallId: 'c',
    errorText: 'cancelled',
    providerExecuted: true,
  })
})

test('usage adds up, in the metadata and on the thread', async () => {
  const { db, runs, init, sandbox, thread } = scene()
  const engine = puppet()
  const run = runs.start({ ...init, messages: [{ id: 'u', role: 'user', parts: [text('Q')] }] }, engine.execute)
  engine.say({ type: 'session', engineSessionId: 's1', model: 'first' }, text('A'))
  engine.say({ type: 'usage', inputTokens: 3, outputTokens: 2, costUsd: 0.25, model: 'second' })
  engine.say({ type: 'usage', inputTokens: 10, outputTokens: 20 })
  engine.say({ type: 'usage', inputTokens: Number.NaN, outputTokens: -1, costUsd: Number.POSITIVE_INFINITY })
  engine.end()
  const { frames } = await read(streamOf(runs.watch(run).feed))
  const metadata = frames.find(({ chunk }) => chunk.type === 'message-metadata')?.chunk.messageMetadata
  const { durationMs } = await run.finished
  expect(Object.entries(metadata as object)).toEqual([
    ['sessionId', thread.id],
    ['totalCostUsd', 0.25],
    ['inputTokens', 13],
    ['outputTokens', 22],
    ['durationMs', durationMs],
    ['sandboxId', sandbox.id],
    ['threadId', thread.id],
    ['runId', run.id],
    ['messageId', listMessages(db, thread.id)[1]!.id],
    ['totalTokens', 35],
    ['model', 'second'],
  ])
  expect(Number.isInteger(durationMs)).toBe(true)
  expect(listMessages(db, thread.id)).toMatchObject([
    { id: 'u', role: 'user', metadata: null },
    { role: 'assistant', parts: [{ type: 'text', text: 'A', state: 'done' }], metadata },
  ])
  const sums = { inputTokens: 13, outputTokens: 22, totalTokens: 35, totalCostUsd: 0.25, durationMs }
  expect(threadUsage(db, thread.id)).toEqual(sums)
  expect(findThread(db, sandbox.id, thread.id)?.engineSessionId).toBe('s1')
})

test('a reply without an end is ended, and what it was is kept: regression', async () => {
  const { db, runs, init, sandbox, thread } = scene()
  const megabytes = { said: 0 }
  const run = runs.start(init, async function* (signal) {
    for (; !signal.aborted && megabytes.said < 1000; megabytes.said++) yield text('x'.repeat(2 ** 20))
    return { status: 'cancelled' }
  })
  await run.finished
  expect(megabytes.said).toBe(64)
  expect(findRun(db, run.id)?.status).toBe('failed')
  expect(findThread(db, sandbox.id, thread.id)?.error).toBe('The reply is longer than 64 MB, and was ended.')
  expect(listMessages(db, thread.id)).toHaveLength(1)
})

test('without a model, the engine is named', async () => {
  const { runs, init } = scene()
  const engine = puppet()
  const run = runs.start(init, engine.execute)
  engine.end()
  const { frames } = await read(streamOf(runs.watch(run).feed))
  expect(frames.at(-2)?.chunk.messageMetadata).toMatchObject({ model: 'puppet', totalCostUsd: 0, totalTokens: 0 })
})

test('an unknown error is logged without what it says', async () => {
  const { runs, init, log } = scene()
  const engine = puppet()
  const run = runs.start(init, engine.execute)
  engine.say({ type: 'notice', level: 'warn', code: 'retry', text: 'secret' })
  engine.throw(new TypeError('secret\nsecret'))
  await run.finished
  expect(log).toHaveLength(2)
  expect(log[0]).toBe(`${run.id}: warn retry`)
  expect(log[1]).toStartWith(`${run.id}: the engine failed: TypeError at `)
  expect(log.join()).not.toContain('secret')
})
