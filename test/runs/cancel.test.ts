import { describe, expect, test } from 'bun:test'
import { listMessages } from '../../src/db/messages.ts'
import { deleteSandbox } from '../../src/db/sandboxes.ts'
import { insertThread } from '../../src/db/threads.ts'
import { streamOf } from '../../src/stream/feed.ts'
import { cleanUpAfterEach, type Puppet, puppet, read, scene, text, typesOf } from './support.ts'

cleanUpAfterEach()

test('a receipt tells how the run ended, each time the same', async () => {
  const { runs, init, thread } = scene()
  const engine = puppet()
  const run = runs.start(init, engine.execute)
  engine.say(text('Hi'))
  await engine.taken()
  const [first, second] = await Promise.all([run.cancel(), run.cancel()])
  expect(first).toEqual({ runId: run.id, threadId: thread.id, chunks: 7, durationMs: expect.any(Number) })
  expect(second).toEqual(first)
  expect(await run.cancel()).toEqual(first)
  expect(engine.signal.aborted).toBe(true)
  expect(engine.returned).toBe(true)
})

test('cancelling what has completed leaves it completed', async () => {
  const { runs, init, sandbox } = scene()
  const engine = puppet()
  const run = runs.start(init, engine.execute)
  engine.end()
  await run.finished
  expect((await run.cancel()).chunks).toBe(3)
  expect(typesOf(await read(streamOf(runs.watch(run).feed)))).not.toContain('abort')
  expect(await runs.cancel(sandbox.id)).toEqual([])
})

test('cancelled before its engine started, the engine never starts', async () => {
  const { runs, init } = scene()
  let started = false
  const run = runs.start(init, async function* () {
    started = true
    yield text('Hi')
    return { status: 'completed' }
  })
  await run.cancel()
  expect(started).toBe(false)
  expect(typesOf(await read(streamOf(runs.watch(run).feed)))).toEqual(['start', 'message-metadata', 'abort', 'finish'])
})

test('when cancel answers, every reader has its end', async () => {
  const { runs, init } = scene()
  const engine = puppet()
  const run = runs.start(init, engine.execute)
  const bodies = Array.from({ length: 5 }, () => streamOf(runs.watch(run).feed))
  expect(run.readerCount).toBe(5)
  engine.say(text('Hi'))
  await engine.taken()
  const { chunks } = await run.cancel()
  for (const reading of await Promise.all(bodies.map(body => read(body)))) {
    expect(reading.frames).toHaveLength(chunks)
    expect(reading.done).toBe(true)
  }
  expect(run.readerCount).toBe(0)
})

describe('an engine that ignores its abort is left behind after the grace', () => {
  const lates: [string, (engine: Puppet) => void][] = [
    [
      'and what it says then is lost',
      engine => engine.say(text('after'), { type: 'usage', inputTokens: 1, outputTokens: 1 }),
    ],
    ['and what it throws then is lost', engine => engine.throw(new Error('late'))],
    ['and how it ends then is lost', engine => engine.end()],
  ]
  for (const [name, late] of lates)
    test(name, async () => {
      const { runs, init, db, thread, log } = scene({ graceMs: 5 })
      const engine = puppet({ deaf: true })
      const run = runs.start(init, engine.execute)
      engine.say(text('before'))
      await engine.taken()
      const { chunks } = await run.cancel()
      late(engine)
      await engine.gone
      const reading = await read(streamOf(runs.watch(run).feed))
      expect(typesOf(reading).slice(-4)).toEqual(['text-end', 'message-metadata', 'abort', 'finish'])
      expect(run.log.count).toBe(chunks)
      expect(listMessages(db, thread.id)).toMatchObject([{ parts: [{ type: 'text', text: 'before', state: 'done' }] }])
      expect(log).toEqual([`${run.id}: the engine did not end within 5 ms of its abort`])
    })
})

test('what an engine says after its abort is left out, what it used is counted', async () => {
  const { runs, init } = scene({ graceMs: 10_000 })
  const engine = puppet({ deaf: true })
  const run = runs.start(init, engine.execute)
  engine.say(text('before'))
  await engine.taken()
  const cancelled = run.cancel()
  engine.say(text('after'), { type: 'usage', inputTokens: 7, outputTokens: 0 })
  engine.end()
  await cancelled
  const { frames } = await read(streamOf(runs.watch(run).feed))
  expect(frames.map(({ chunk }) => chunk.delta).filter(Boolean)).toEqual(['before'])
  expect(frames.at(-3)?.chunk.messageMetadata).toMatchObject({ inputTokens: 7 })
  expect(frames.at(-2)?.chunk.type).toBe('abort')
})

describe('an engine that misbehaves ends as failed, and the process lives', () => {
  const misfits: [string, unknown][] = [
    [
      'it throws before it yields',
      () => {
        throw new Error('no')
      },
    ],
    ['it is no generator', () => ({})],
    ['it gives nothing', () => undefined],
    [
      'it yields nonsense',
      async function* () {
        yield undefined
      },
    ],
    ['it returns nothing', async function* () {}],
    [
      'it throws what is no error',
      async function* () {
        yield text('Hi')
        throw 'a string'
      },
    ],
    [
      'it fails again while it cleans up',
      async function* () {
        try {
          yield null
        } finally {
          // biome-ignore lint/correctness/noUnsafeFinally: the misbehaviour under test
          throw new Error('again')
        }
      },
    ],
  ]
  for (const [name, execute] of misfits)
    test(name, async () => {
      const { runs, init } = scene()
      const run = runs.start(init, execute as never)
      const reading = await read(streamOf(runs.watch(run).feed))
      expect(typesOf(reading).slice(-3)).toEqual(['message-metadata', 'error', 'finish'])
      expect(reading.done).toBe(true)
    })
})

test('an engine that never pauses can be cancelled, and starves nobody', async () => {
  const { runs, init } = scene()
  const run = runs.start(init, async function* () {
    for (;;) yield text('x')
  })
  let ticks = 0
  const timer = setInterval(() => {
    ticks += 1
    if (ticks === 3) void run.cancel()
  }, 1)
  const { durationMs } = await run.finished
  clearInterval(timer)
  expect(ticks).toBeGreaterThanOrEqual(3)
  expect(durationMs).toBeLessThan(20_000)
})

test('a sandbox deleted during a run ends it without an end, and the process lives', async () => {
  const { runs, init, db, sandbox, thread, log } = scene()
  const engine = puppet()
  const run = runs.start(init, engine.execute)
  const body = streamOf(runs.watch(run).feed)
  engine.say(text('Hi'))
  await engine.taken()
  deleteSandbox(db, sandbox.id)
  engine.say(text('more'))
  await run.finished
  await expect(read(body)).rejects.toThrow()
  expect(runs.activeOn(thread.id)).toBeUndefined()
  expect(engine.signal.aborted).toBe(true)
  expect(engine.returned).toBe(true)
  expect(log.map(line => line.replace(/(SQLiteError).*/, '$1'))).toEqual([
    `${run.id}: the engine failed: SQLiteError`,
    `${run.id}: its end could not be stored: SQLiteError`,
  ])
})

test('two threads of a sandbox run side by side, and are cancelled together or one by one', async () => {
  const { runs, init, db, sandbox } = scene()
  const start = () => {
    const engine = puppet()
    const thread = insertThread(db, { sandboxId: sandbox.id })
    return { engine, run: runs.start({ ...init, threadId: thread.id }, engine.execute) }
  }
  const [a, b, c] = [start(), start(), start()]
  expect(runs.active(sandbox.id)).toEqual([c.run, b.run, a.run])
  expect(runs.active(sandbox.id, b.run.threadId)).toEqual([b.run])
  a.engine.say(text('from a'))
  b.engine.say(text('from b'))
  await Promise.all([a.engine.taken(), b.engine.taken()])
  expect((await runs.cancel(sandbox.id, b.run.threadId)).map(({ runId }) => runId)).toEqual([b.run.id])
  expect(runs.active(sandbox.id)).toEqual([c.run, a.run])
  expect((await runs.cancel(sandbox.id)).map(({ runId }) => runId)).toEqual([c.run.id, a.run.id])
  expect(await runs.cancel(sandbox.id)).toEqual([])
  const { frames } = await read(streamOf(runs.watch(a.run).feed))
  expect(frames.map(({ chunk }) => chunk.delta).filter(Boolean)).toEqual(['from a'])
})
