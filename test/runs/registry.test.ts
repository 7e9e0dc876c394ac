import { describe, expect, test } from 'bun:test'
import { listMessages } from '../../src/db/messages.ts'
import { findRun } from '../../src/db/runs.ts'
import { findThread, insertThread } from '../../src/db/threads.ts'
import { streamOf } from '../../src/stream/feed.ts'
import { addSandbox, cleanUpAfterEach, puppet, read, scene, text, typesOf } from './support.ts'

cleanUpAfterEach()

describe('a thread with an active run', () => {
  test('takes no other', () => {
    const { runs, init, db, thread } = scene()
    runs.start(init, puppet().execute)
    const messages = [{ id: 'u', role: 'user' as const, parts: [] }]
    expect(() => runs.start({ ...init, messages }, puppet().execute)).toThrow(
      expect.objectContaining({ code: 'run_active', status: 409 }),
    )
    expect(listMessages(db, thread.id)).toEqual([])
  })

  test('is superseded when nobody reads it', async () => {
    const { runs, init, db, thread } = scene()
    const first = runs.start(init, puppet().execute)
    await runs.supersede(thread.id)
    expect(findRun(db, first.id)?.status).toBe('cancelled')
    expect(runs.start(init, puppet().execute).id).not.toBe(first.id)
  })

  test('is not superseded while somebody reads it', async () => {
    const { runs, init, thread } = scene()
    const run = runs.start(init, puppet().execute)
    const body = streamOf(runs.watch(run).feed)
    await expect(runs.supersede(thread.id)).rejects.toMatchObject({ code: 'run_active' })
    await body.cancel()
    await runs.supersede(thread.id)
    expect(runs.activeOn(thread.id)).toBeUndefined()
  })

  test('is not superseded in the background', async () => {
    const { runs, init, thread } = scene()
    runs.start({ ...init, background: true }, puppet().execute)
    await expect(runs.supersede(thread.id)).rejects.toMatchObject({ code: 'run_active' })
  })

  test('without one, there is nothing to supersede', async () => {
    const { runs, thread } = scene()
    expect(await runs.supersede(thread.id)).toBeUndefined()
  })
})

test('a run on a thread that is gone is refused, and leaves nothing', () => {
  const { runs, init, db } = scene()
  expect(() => runs.start({ ...init, threadId: 'thr_none' }, puppet().execute)).toThrow('FOREIGN KEY')
  expect(db.query('select * from runs').all()).toEqual([])
  expect(runs.activeOn('thr_none')).toBeUndefined()
})

test('a client that has its end can start the next run at once', async () => {
  const { runs, init } = scene()
  for (let round = 0; round < 20; round++) {
    const engine = puppet()
    engine.say(text('Hi'))
    engine.end()
    const body = streamOf(runs.watch(runs.start(init, engine.execute)).feed)
    await read(body, reading => reading.frames.at(-1)?.chunk.type === 'finish')
  }
})

describe('resume', () => {
  const started = async () => {
    const all = scene()
    const engine = puppet()
    const run = all.runs.start(all.init, engine.execute)
    engine.say(text('a'), text('b'))
    await engine.taken()
    return { ...all, engine, run }
  }

  test('of an idle sandbox is nothing', () => {
    const { runs, sandbox, thread } = scene()
    expect(runs.resume(sandbox.id)).toBeUndefined()
    expect(runs.resume(sandbox.id, { threadId: thread.id })).toBeUndefined()
    expect(runs.resume('sandbox-echo')).toBeUndefined()
  })

  test('replays from the first chunk, then follows', async () => {
    const { runs, sandbox, engine, run, thread } = await started()
    const { feed, ...ids } = runs.resume(sandbox.id)!
    expect(ids).toEqual({ runId: run.id, threadId: thread.id, sandboxId: sandbox.id })
    engine.say(text('c'))
    engine.end()
    const reading = await read(streamOf(feed))
    expect(typesOf(reading).slice(0, 2)).toEqual(['start', 'text-start'])
    expect(reading.frames.map(({ chunk }) => chunk.delta).filter(Boolean)).toEqual(['a', 'b', 'c'])
  })

  test('goes on after Last-Event-ID, also after the end', async () => {
    const { runs, sandbox, engine, run } = await started()
    const during = runs.resume(sandbox.id, { lastEventId: `${run.id}/3` })!
    engine.end()
    const after = async () =>
      (await read(streamOf(runs.resume(sandbox.id, { lastEventId: `${run.id}/3` })!.feed))).frames
    const { frames } = await read(streamOf(during.feed))
    expect(frames.map(({ seq }) => seq)).toEqual([4, 5, 6, 7])
    expect(await after()).toEqual(frames)
    expect(runs.resume(sandbox.id)).toBeUndefined()
  })

  test('after all was seen is only the end', async () => {
    const { runs, sandbox, engine, run } = await started()
    engine.end()
    await run.finished
    const reading = await read(streamOf(runs.resume(sandbox.id, { lastEventId: `${run.id}/${run.log.count}` })!.feed))
    expect(reading).toEqual({ frames: [], comments: [': open'], done: true })
  })

  test('of an id beyond the log is refused in the form of a stream', async () => {
    const { runs, sandbox, engine, run } = await started()
    const body = streamOf(runs.resume(sandbox.id, { lastEventId: `${run.id}/999` })!.feed)
    const text = await new Response(body).text()
    expect(text).toMatch(/^: open\n\ndata: \{"type":"error","errorText":".*"\}\n\ndata: \[DONE\]\n\n$/)
    engine.end()
  })

  test('ends ten minutes after the end', async () => {
    const { runs, sandbox, engine, run, db } = await started()
    engine.end()
    await run.finished
    const endedAt = new Date(Date.now() - 10 * 60_000 - 1).toISOString()
    db.query('update runs set ended_at = ? where id = ?').run(endedAt, run.id)
    expect(runs.resume(sandbox.id, { lastEventId: `${run.id}/1` })).toBeUndefined()
  })

  test('takes the youngest run, or the one of its thread, or the one of its id', async () => {
    const { runs, sandbox, run, init, db, thread } = await started()
    const other = insertThread(db, { sandboxId: sandbox.id })
    const young = runs.start({ ...init, threadId: other.id }, puppet().execute)
    expect(runs.resume(sandbox.id)?.runId).toBe(young.id)
    expect(runs.resume(sandbox.id, { threadId: thread.id })?.runId).toBe(run.id)
    expect(runs.resume(sandbox.id, { lastEventId: `${run.id}/1` })?.runId).toBe(run.id)
    expect(runs.resume(sandbox.id, { lastEventId: 'not ours' })?.runId).toBe(young.id)
  })

  test('of another sandbox or thread is nothing', async () => {
    const { runs, sandbox, run, engine, db } = await started()
    const lastEventId = `${run.id}/1`
    const thread = insertThread(db, { sandboxId: sandbox.id })
    const attempts = () => [
      runs.resume(addSandbox(db).id, { lastEventId }),
      runs.resume(sandbox.id, { lastEventId, threadId: thread.id }),
    ]
    expect(attempts()).toEqual([undefined, undefined])
    engine.end()
    await run.finished
    expect(attempts()).toEqual([undefined, undefined])
  })
})

test('purge deletes old logs only, in batches', async () => {
  const { runs, init, db, sandbox } = scene()
  const old = runs.start(init, async function* () {
    for (let index = 0; index < 5000; index++) yield text('x')
    return { status: 'completed' }
  })
  await old.finished
  db.query("update runs set ended_at = '2020-01-01T00:00:00.000Z'").run()
  const recent = runs.start(init, async function* () {
    yield* []
    return { status: 'completed' }
  })
  await recent.finished
  const active = runs.start({ ...init, threadId: insertThread(db, { sandboxId: sandbox.id }).id }, puppet().execute)
  await runs.purge(new Date())
  const logs = db.query('select run_id as id, count(*) as chunks from run_chunks group by run_id').all()
  expect(logs).toEqual([
    { id: recent.id, chunks: 3 },
    { id: active.id, chunks: 1 },
  ])
})

describe('close', () => {
  test('refuses new runs', async () => {
    const { runs, init } = scene()
    await runs.close(0)
    expect(() => runs.start(init, puppet().execute)).toThrow(expect.objectContaining({ code: 'shutting_down' }))
  })

  test('lets a run end by itself', async () => {
    const { runs, init, db } = scene()
    const engine = puppet()
    const run = runs.start(init, engine.execute)
    const closed = runs.close(60_000)
    engine.end()
    await closed
    expect(findRun(db, run.id)?.status).toBe('completed')
  })

  test('interrupts a run that does not, its engine aborted and its readers told', async () => {
    const { runs, init, db, sandbox, thread } = scene({ graceMs: 5 })
    const engine = puppet()
    const run = runs.start(init, engine.execute)
    const deaf = insertThread(db, { sandboxId: sandbox.id })
    const other = runs.start({ ...init, threadId: deaf.id }, puppet({ deaf: true }).execute)
    const body = streamOf(runs.watch(run).feed)
    engine.say(text('Hi'))
    await engine.taken()
    await runs.close(1)
    expect(engine.signal.aborted).toBe(true)
    expect(runs.active(sandbox.id)).toEqual([])
    for (const { id } of [run, other]) expect(findRun(db, id)?.status).toBe('interrupted')
    const { frames } = await read(body)
    expect(frames.slice(-4).map(({ chunk }) => chunk.type)).toEqual(['text-end', 'message-metadata', 'error', 'finish'])
    expect(frames.at(-2)?.chunk.errorText).toBe('The server is shutting down.')
    expect(findThread(db, sandbox.id, thread.id)).toMatchObject({
      status: 'error',
      error: 'The server is shutting down.',
    })
  })
})
