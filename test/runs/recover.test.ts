import { expect, test } from 'bun:test'
import { cutBranch, listBranches } from '../../src/db/branches.ts'
import { lastMessages, listMessages } from '../../src/db/messages.ts'
import { insertModelCall } from '../../src/db/model-calls.ts'
import { findRun, listActiveRuns } from '../../src/db/runs.ts'
import { ensureTeam } from '../../src/db/teams.ts'
import { findThread, insertThread, threadUsage } from '../../src/db/threads.ts'
import { user } from '../../src/plugin-suite/turn.ts'
import { createRuns } from '../../src/runs/registry.ts'
import { streamOf } from '../../src/stream/feed.ts'
import { cleanUpAfterEach, openTemporary, puppet, read, scene, text, typesOf } from './support.ts'

cleanUpAfterEach()

/** A server that has crashed in the middle of a reply, and the one that comes after it. */
async function crash() {
  const first = scene()
  const engine = puppet()
  const run = first.runs.start(first.init, engine.execute)
  engine.say(text('Let me look.'), { type: 'tool-call', callId: 'c', name: 'Bash', input: { command: 'ls' } })
  engine.say({ type: 'usage', inputTokens: 5, outputTokens: 6, costUsd: 0.5, model: 'm' })
  await engine.taken()
  const db = openTemporary(first.path)
  const runs = createRuns(db, { log: () => {} })
  return { ...first, db, runs, run }
}

test('a run that was active is closed as interrupted, with what it had said kept', async () => {
  const { db, runs, run, sandbox, thread } = await crash()
  expect(runs.recover()).toBe(1)
  expect(findRun(db, run.id)).toMatchObject({ status: 'interrupted', endedAt: expect.any(String) })
  expect(findThread(db, sandbox.id, thread.id)).toMatchObject({
    status: 'error',
    error: 'The server stopped during this reply.',
    completedAt: expect.any(String),
  })
  expect(listMessages(db, thread.id)).toMatchObject([
    {
      role: 'assistant',
      parts: [
        { type: 'text', text: 'Let me look.', state: 'done' },
        {
          type: 'tool-Bash',
          toolCallId: 'c',
          state: 'output-error',
          input: { command: 'ls' },
          errorText: 'The server stopped during this reply.',
        },
      ],
      metadata: { runId: run.id, inputTokens: 5, outputTokens: 6, totalTokens: 11, totalCostUsd: 0.5, model: 'm' },
    },
  ])
  expect(threadUsage(db, thread.id)).toMatchObject({ totalTokens: 11, totalCostUsd: 0.5 })
})

test('a reader that comes back has the rest, then the end of a failed run', async () => {
  const { runs, run, sandbox } = await crash()
  runs.recover()
  const reading = await read(streamOf(runs.resume(sandbox.id, { lastEventId: `${run.id}/4` })!.feed))
  expect(typesOf(reading)).toEqual([
    'tool-input-start',
    'tool-input-available',
    'tool-output-error',
    'message-metadata',
    'error',
    'finish',
  ])
  expect(reading.frames.map(({ seq }) => seq)).toEqual([5, 6, 7, 8, 9, 10])
  expect(reading.done).toBe(true)
  expect(runs.resume(sandbox.id)).toBeUndefined()
})

test('the thread takes the next run', async () => {
  const { runs, init, db, sandbox, thread } = await crash()
  runs.recover()
  const engine = puppet()
  const run = runs.start(init, engine.execute)
  engine.end()
  await run.finished
  expect(findThread(db, sandbox.id, thread.id)).toMatchObject({ status: 'completed', error: null })
})

test('it is done once, and leaves ended runs alone', async () => {
  const { db, runs, init, sandbox } = await crash()
  runs.recover()
  const other = insertThread(db, { sandboxId: sandbox.id })
  const ended = runs.start({ ...init, threadId: other.id }, async function* () {
    yield* []
    return { status: 'completed' }
  })
  await ended.finished
  expect(runs.recover()).toBe(0)
  expect(findRun(db, ended.id)?.status).toBe('completed')
})

test('a long reply that was cut off is kept whole', async () => {
  const first = scene()
  const engine = puppet()
  first.runs.start(first.init, engine.execute)
  engine.say(...Array.from({ length: 2000 }, (_, index) => text(`${index},`)))
  await engine.taken()
  const db = openTemporary(first.path)
  createRuns(db, { log: () => {} }).recover()
  const [message] = listMessages(db, first.thread.id)
  expect(message?.parts).toEqual([
    { type: 'text', text: Array.from({ length: 2000 }, (_, index) => `${index},`).join(''), state: 'done' },
  ])
})

test('what its model calls used is told, also what the run did not know yet', async () => {
  const { db, runs, thread } = await crash()
  const [run] = listActiveRuns(db)
  const { id: teamId } = ensureTeam(db, 'team')
  const tokens = { inputTokens: 70, outputTokens: 8, cacheReadTokens: 0, cacheWriteTokens: 0 }
  const ids = { teamId, agentSlug: 'coder', sandboxId: run!.sandboxId, threadId: thread.id, runId: run!.id }
  const model = { provider: 'anthropic', model: 'm', status: 'aborted' as const, costUsd: 0.25 }
  insertModelCall(db, 'call_1', { ...ids, ...model, ...tokens, startedAt: run!.startedAt, durationMs: 1 })
  runs.recover()
  expect(threadUsage(db, thread.id)).toMatchObject({ inputTokens: 70, outputTokens: 8, totalCostUsd: 0.25 })
})

/** A server that has crashed in the middle of a reply, a later one that did not end that run, and went on with the thread. */
async function crashAndGoOn() {
  const scene = await crash()
  const later = createRuns(scene.db, { log: () => {} })
  const run = later.start({ ...scene.init, messages: [user('And now?')] }, async function* () {
    yield text('Now this.')
    return { status: 'completed' }
  })
  await run.finished
  return { ...scene, later: run }
}

test('a reply that is recovered late has its place in the thread, and the later status stays', async () => {
  const { db, runs, sandbox, thread, run, later } = await crashAndGoOn()
  expect(runs.recover()).toBe(1)
  const messages = listMessages(db, thread.id)
  expect(messages.map(({ role }) => role)).toEqual(['assistant', 'user', 'assistant'])
  expect(messages.map(({ metadata }) => metadata)).toMatchObject([{ runId: run.id }, null, { runId: later.id }])
  expect(findThread(db, sandbox.id, thread.id)).toMatchObject({ status: 'completed', error: null })
})

test('a reply that is recovered late is where its question is, also when that was cut off', async () => {
  const first = scene()
  const engine = puppet()
  first.runs.start({ ...first.init, messages: [{ ...user('First'), id: 'm1' }] }, engine.execute)
  engine.say(text('Let me look.'))
  await engine.taken()
  const { id } = first.thread
  const db = openTemporary(first.path)
  const later = createRuns(db, { log: () => {} })
  cutBranch(db, id, 'm1', { branches: 9, bytes: 9999 })
  const init = { ...first.init, messages: [{ ...user('Second'), id: 'm1' }] }
  await later.start(init, async function* () {
    yield text('Now this.')
    return { status: 'completed' }
  }).finished
  const runs = createRuns(db, { log: () => {} })
  expect(runs.recover()).toBe(1)
  expect(listMessages(db, id)).toMatchObject([
    { id: 'm1', parts: [{ text: 'Second' }] },
    { role: 'assistant', parts: [{ text: 'Now this.' }] },
  ])
  const [branch] = listBranches(db, id)
  expect(lastMessages(db, { branchId: branch!.id }, { messages: 9, characters: 9999 })).toMatchObject([
    { id: 'm1', parts: [{ text: 'First' }] },
    { role: 'assistant', parts: [{ text: 'Let me look.' }] },
  ])
})

test('a run that cannot be ended at a start does not keep the server from starting, and is ended later', async () => {
  const { db, run, path } = await crash()
  const log: string[] = []
  const runs = createRuns(db, { log: line => log.push(line) })
  const beside = openTemporary(path)
  beside.run(`create trigger full before insert on messages begin select raise(abort, 'full'); end`)
  expect(runs.recover()).toBe(1)
  expect(log).toEqual([`${run.id}: its end could not be stored: full`])
  expect(findRun(db, run.id)).toMatchObject({ status: 'active' })
  beside.run('drop trigger full')
  await runs.purge(new Date())
  expect(findRun(db, run.id)).toMatchObject({ status: 'interrupted' })
})

test('readers of a run whose end cannot be stored fail after a while, and those that come back get it', async () => {
  const { db, init, runs, sandbox } = scene({ readersWaitMs: 20 })
  db.run(`create trigger full before update of status on runs begin select raise(abort, 'full'); end`)
  const engine = puppet()
  const run = runs.start(init, engine.execute)
  const body = streamOf(runs.watch(run).feed)
  engine.say(text('Hi'))
  engine.end()
  await expect(read(body)).rejects.toThrow('could not be stored')
  db.run('drop trigger full')
  await run.finished
  const reading = await read(streamOf(runs.resume(sandbox.id, { lastEventId: `${run.id}/3` })!.feed))
  expect(typesOf(reading)).toEqual(['text-end', 'message-metadata', 'finish'])
})

test('after a loss of power no id means another chunk: who has what is lost is told, who has less gets the end', async () => {
  const { db, runs, run, sandbox } = await crash()
  // The reader had six chunks; the last two did not come to the disk.
  db.run('delete from run_chunks where seq > 4')
  runs.recover(true)
  const after = (seq: number) => read(streamOf(runs.resume(sandbox.id, { lastEventId: `${run.id}/${seq}` })!.feed))
  const whole = await after(2)
  expect(whole.frames.map(({ seq }) => seq)).toEqual([3, 4, 1_000_005, 1_000_006, 1_000_007])
  expect(typesOf(whole).slice(2)).toEqual(['message-metadata', 'error', 'finish'])
  expect(await after(4)).toMatchObject({ frames: whole.frames.slice(2), done: true })
  expect(await after(1_000_006)).toMatchObject({ frames: whole.frames.slice(4), done: true })
  for (const lost of [5, 6, 7, 999_999, 1_000_008]) {
    const body = streamOf(runs.resume(sandbox.id, { lastEventId: `${run.id}/${lost}` })!.feed)
    expect(await new Response(body).text()).toContain('"type":"error"')
  }
})
