import { Database } from 'bun:sqlite'
import { describe, expect, test } from 'bun:test'
import { findThread } from '../../src/db/threads.ts'
import type { ChunkSource } from '../../src/runs/log.ts'
import { readRun } from '../../src/runs/reader.ts'
import { createSilences } from '../../src/runs/silences.ts'
import { streamOf } from '../../src/stream/feed.ts'
import { projectJson } from '../../src/stream/project.ts'
import { bytesInUse } from '../support/memory.ts'
import { cleanUpAfterEach, type Frame, puppet, read, scene, text, typesOf } from './support.ts'

cleanUpAfterEach()

test('a chunk that a reader sees is committed', async () => {
  const { runs, init, path } = scene()
  const other = new Database(path, { readonly: true })
  const stored = other.query<{ chunk: string }, [string, number]>(
    'select chunk from run_chunks where run_id = ? and seq = ?',
  )
  const status = other.query<{ status: string }, [string]>('select status from runs where id = ?')
  const engine = puppet()
  const run = runs.start(init, engine.execute)
  let seen = 0
  const { frames } = await read(streamOf(runs.watch(run).feed), reading => {
    for (const { seq, chunk } of reading.frames.slice(seen)) {
      expect(projectJson(stored.get(run.id, seq)?.chunk ?? 'null', 'contract')).toBe(JSON.stringify(chunk))
      if (chunk.type === 'message-metadata') expect(status.get(run.id)?.status).toBe('completed')
    }
    seen = reading.frames.length
    if (seen < 30) engine.say(text(`${seen} `))
    else engine.end()
    return false
  })
  expect(frames.at(-1)?.chunk.type).toBe('finish')
  other.close()
})

test('readers that join anywhere, by an id or not, miss nothing and see nothing twice', async () => {
  const { runs, init, sandbox } = scene()
  const engine = puppet()
  const run = runs.start(init, engine.execute)
  const readings: { after: number; frames: Promise<Frame[]> }[] = []
  const framesOf = async (body: ReadableStream<Uint8Array>) => (await read(body)).frames
  for (let step = 0; step < 100; step++) {
    // More than the tail in memory keeps, so that late readers begin in the database.
    engine.say(...Array.from({ length: 13 }, (_, index) => text(`${step}.${index} `)))
    await engine.taken()
    const after = Math.floor((run.log.count * ((step * 7) % 10)) / 10)
    const lastEventId = `${run.id}/${after}`
    const watched = runs.resume(sandbox.id, after === 0 ? {} : { lastEventId })
    readings.push({ after, frames: framesOf(streamOf(watched!.feed)) })
  }
  engine.end()
  const all = await framesOf(streamOf(runs.watch(run).feed))
  expect(all.map(({ seq }) => seq)).toEqual(Array.from({ length: 1300 + 5 }, (_, index) => index + 1))
  for (const { after, frames } of readings) expect(await frames).toEqual(all.slice(after))
})

test('a reader hears something at once, and in each silence', async () => {
  const { runs, init } = scene({ heartbeatMs: 1 })
  const engine = puppet()
  const run = runs.start(init, engine.execute)
  const reading = await read(streamOf(runs.watch(run).feed), ({ comments }) => {
    if (comments.length === 4) engine.end()
    return false
  })
  expect(reading.comments.slice(0, 4)).toEqual([': open', ': keep-alive', ': keep-alive', ': keep-alive'])
  expect(typesOf(reading)).toEqual(['start', 'message-metadata', 'finish'])
})

test('a reader that leaves is counted out, and its run goes on', async () => {
  const { runs, init } = scene()
  const engine = puppet()
  const run = runs.start(init, engine.execute)
  const [stayed, left] = [streamOf(runs.watch(run).feed), streamOf(runs.watch(run).feed)]
  await read(left, ({ frames }) => frames.length > 0)
  expect(run.readerCount).toBe(1)
  const unread = streamOf(runs.watch(run).feed)
  await unread.cancel()
  const waiting = streamOf(runs.watch(run).feed).getReader()
  await waiting.read()
  await waiting.read()
  const next = waiting.read()
  await waiting.cancel()
  expect((await next).done).toBe(true)
  expect(run.readerCount).toBe(1)
  engine.say(text('on'))
  engine.end()
  expect((await read(stayed)).done).toBe(true)
})

test('over HTTP, a client hears the opening at once, and its leaving is seen', async () => {
  const { runs, init } = scene()
  const engine = puppet()
  const run = runs.start(init, engine.execute)
  const left = Promise.withResolvers<void>()
  const attach = run.log.attach
  run.log.attach = () => {
    const detach = attach()
    return () => {
      detach()
      left.resolve()
    }
  }
  const server = Bun.serve({ port: 0, idleTimeout: 0, fetch: () => new Response(streamOf(runs.watch(run).feed)) })
  const abort = new AbortController()
  const response = await fetch(server.url, { signal: abort.signal })
  const reader = response.body!.getReader()
  let heard = ''
  while (!heard.includes('start')) heard += new TextDecoder().decode((await reader.read()).value)
  expect(heard).toStartWith(': open\n\n')
  expect(run.readerCount).toBe(1)
  abort.abort()
  await left.promise
  expect(run.readerCount).toBe(0)
  engine.say(text('on'))
  engine.end()
  expect((await run.finished).chunks).toBe(6)
  await server.stop(true)
})

describe('a reader that does not read', () => {
  test('has no page made for it', async () => {
    const { runs, init } = scene()
    const engine = puppet()
    const run = runs.start(init, engine.execute)
    let pages = 0
    const source: ChunkSource = {
      ...run.log,
      read(after) {
        pages += 1
        return run.log.read(after)
      },
      get ended() {
        return run.log.ended
      },
    }
    const reader = streamOf(readRun(source, 0, createSilences(60_000))).getReader()
    await reader.read()
    for (let round = 0; round < 50; round++) {
      engine.say(...Array.from({ length: 100 }, () => text('x'.repeat(1000))))
      await engine.taken()
    }
    expect(pages).toBe(0)
    engine.end()
    await run.finished
    let frames = 0
    let largest = 0
    for (;;) {
      const { value, done } = await reader.read()
      if (done) break
      largest = Math.max(largest, value.length)
      frames += new TextDecoder().decode(value).split('id: run_').length - 1
    }
    expect(frames).toBe(run.log.count)
    expect(largest).toBeLessThan(300 * 1024)
  })

  test('holds up nobody', async () => {
    const { runs, init } = scene()
    const engine = puppet()
    const run = runs.start(init, engine.execute)
    const paused = streamOf(runs.watch(run).feed).getReader()
    await paused.read()
    engine.say(text('a'), text('b'))
    engine.end()
    expect((await read(streamOf(runs.watch(run).feed))).done).toBe(true)
    await paused.cancel()
  })
})

test('a reader of a log that is purged meanwhile fails, rather than seem whole', async () => {
  const { runs, init, db } = scene()
  const run = runs.start(init, async function* () {
    for (let index = 0; index < 1000; index++) yield text(`${index}`)
    return { status: 'completed' }
  })
  await run.finished
  const reader = streamOf(runs.watch(run).feed).getReader()
  await reader.read()
  await reader.read()
  await runs.purge(new Date(Date.now() + 11 * 60_000))
  expect(db.query('select count(*) as count from run_chunks').get()).toEqual({ count: 0 })
  const rest = async () => {
    while (!(await reader.read()).done);
  }
  await expect(rest()).rejects.toThrow('gone')
})

test('200,000 deltas keep the text, not the frames', async () => {
  const { runs, init, db, sandbox, thread } = scene()
  const before = bytesInUse()
  let peak = 0
  const run = runs.start(init, async function* () {
    for (let index = 0; index < 200_000; index++) {
      if (index % 20_000 === 19_999) peak = Math.max(peak, bytesInUse())
      yield text('0123456789')
    }
    return { status: 'completed' }
  })
  const { chunks } = await run.finished
  expect(chunks).toBe(200_005)
  expect(peak - before).toBeLessThan(30 * 1024 * 1024)
  let last = 0
  for await (const bytes of streamOf(runs.watch(run).feed)) last = Math.max(last, bytes.length)
  expect(last).toBeLessThan(100 * 1024)
  expect(findThread(db, sandbox.id, thread.id)?.status).toBe('completed')
}, 60_000)
