import { expect, test } from 'bun:test'
import { insertThread } from '../../src/db/threads.ts'
import { streamOf } from '../../src/stream/feed.ts'
import type { StreamProfile } from '../../src/stream/project.ts'
import { bytesInUse } from '../support/memory.ts'
import { until } from '../support/until.ts'
import { cleanUpAfterEach, puppet, scene, text } from './support.ts'

cleanUpAfterEach()

const PROFILES: readonly StreamProfile[] = ['contract', 'full', 'ai-7']

test('1,000 readers of three profiles, from wherever they start, get the bytes that a reader alone gets', async () => {
  const { runs, init, db, sandbox } = scene()
  const all = PROFILES.map(profile => {
    const engine = puppet()
    const { id: threadId } = insertThread(db, { sandboxId: sandbox.id })
    return {
      engine,
      run: runs.start({ ...init, threadId, profile }, engine.execute),
      readings: new Map<number, Promise<string>[]>(),
    }
  })
  const bytesAfter = (id: string, after: number) => {
    const lastEventId = after === 0 ? {} : { lastEventId: `${id}/${after}` }
    const { threadId } = all.find(({ run }) => run.id === id)!.run
    return new Response(streamOf(runs.resume(sandbox.id, { threadId, ...lastEventId })!.feed)).text()
  }
  for (let step = 0; step < 50; step++) {
    for (const { engine, run, readings } of all) {
      engine.say(
        { type: 'source', id: `s${step}`, url: 'https://example.com' },
        { type: 'data', name: 'chart', id: `d${step}`, data: step },
        ...Array.from({ length: 10 }, (_, index) => text(`${step}.${index} ü`)),
      )
      await engine.taken()
      for (let reader = 0; reader < 7; reader++) {
        const after = Math.floor((run.log.count * ((step * 3 + reader) % 8)) / 8)
        readings.set(after, [...(readings.get(after) ?? []), bytesAfter(run.id, after)])
      }
    }
  }
  for (const { engine } of all) engine.end()
  let readers = 0
  for (const { run, readings } of all) {
    await run.finished
    for (const [after, bodies] of readings) {
      // Read from the database alone, after the run's end.
      const lastEventId = `${run.id}/${after}`
      const { feed } = runs.resume(sandbox.id, { threadId: run.threadId, lastEventId })!
      const alone = await new Response(streamOf(feed)).text()
      expect(alone.endsWith('data: [DONE]\n\n')).toBe(true)
      for (const body of await Promise.all(bodies)) {
        expect(body).toBe(alone)
        readers += 1
      }
    }
  }
  expect(readers).toBe(1050)
})

test('a chunk reaches its first reader at once, and between its many readers the event loop does other things', async () => {
  const { runs, init } = scene()
  const engine = puppet()
  const run = runs.start(init, engine.execute)
  const woken: number[] = []
  let turns = 0
  for (let reader = 0; reader < 500; reader++) {
    const { feed } = runs.watch(run)
    while (feed.take());
    feed.wait(() => woken.push(turns))
  }
  run.log.show(['{"type":"text-delta","id":"text-1","delta":"a"}'])
  expect(woken.length).toBeGreaterThan(0)
  expect(woken.length).toBeLessThan(50)
  while (woken.length < 500) {
    await new Promise(setImmediate)
    turns += 1
  }
  expect(turns).toBeGreaterThan(10)
  engine.end()
  await run.finished
})

test('readers that have left are forgotten, and hold no memory', async () => {
  const { runs, init } = scene()
  const engine = puppet()
  const run = runs.start(init, engine.execute)
  engine.say(text('a'))
  await engine.taken()
  const join = async (count: number) => {
    const readers = Array.from({ length: count }, () => streamOf(runs.watch(run).feed).getReader())
    for (const reader of readers) {
      // The opening, and the chunks so far: after these it waits.
      await reader.read()
      await reader.read()
      void reader.read()
    }
    expect(run.readerCount).toBe(count)
    await Promise.all(readers.map(reader => reader.cancel()))
    expect(run.readerCount).toBe(0)
  }
  await join(1000)
  const before = bytesInUse()
  for (let round = 0; round < 5; round++) await join(2000)
  await until(() => bytesInUse() - before < 2 * 1024 * 1024)
  engine.end()
  await run.finished
})
