import { afterEach, expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'
import { cancel, chat, contents, resume, startChat, threadOf } from '../support/chat.ts'
import { readEvents, textIn, typesIn } from '../support/sse.ts'
import { until } from '../support/until.ts'

const app = useApp()

/** From here on no run's end can be stored, as on a disk that is full. */
const refuseEnds = () =>
  app.beside(db =>
    db.run(
      `create trigger refuse_ends before update of status on runs when new.status <> 'active'
       begin select raise(abort, 'the disk is full'); end`,
    ),
  )
const takeEnds = () => app.beside(db => db.run('drop trigger if exists refuse_ends'))
afterEach(takeEnds)

const refused = (runId: string) =>
  until(() => app.log.some(line => line.startsWith(`${runId}: its end could not be stored`)))

test('readers wait for an end that cannot be stored yet, and then get it', async () => {
  refuseEnds()
  const started = await startChat(app, 'one two three')
  const reading = readEvents(started.response)
  await refused(started.runId)
  // Nothing has ended: the thread is taken, and its reply is not shown.
  expect(await threadOf(app, started)).toMatchObject({ status: 'streaming' })
  expect(await contents(app, started)).toEqual(['user: one two three'])
  const { sandboxId, threadId } = started
  const other = { sandboxId, threadId, messages: [{ role: 'user', parts: [{ type: 'text', text: 'more' }] }] }
  expect((await app.ask('POST', '/v1/chat/echo', other)).body.error.code).toBe('run_active')
  const resumed = readEvents(await resume(app, sandboxId))
  takeEnds()
  const events = await reading
  const chunks = events.map(({ data }) => data)
  expect(textIn(chunks)).toBe('one two three')
  expect(typesIn(chunks).slice(-3)).toEqual(['text-end', 'message-metadata', 'finish'])
  expect(await resumed).toEqual(events)
  expect(await threadOf(app, started)).toMatchObject({ status: 'completed' })
  await chat(app, 'four', { sandboxId, threadId })
  expect(await contents(app, started)).toEqual([
    'user: one two three',
    'assistant: one two three',
    'user: four',
    'assistant: four',
  ])
  expect(app.log.filter(line => line.startsWith(started.runId)).at(-1)).toBe(`${started.runId}: its end is stored now`)
})

test('a cancel says that the end is not stored, and a delete needs no such store', async () => {
  refuseEnds()
  const started = await startChat(app, '/slow 1000')
  const reading = started.response.text()
  reading.catch(() => {})
  const answer = await cancel(app, started.sandboxId)
  expect(answer).toMatchObject({ status: 503, body: { error: { code: 'server_busy' } } })
  expect((await app.ask('DELETE', `/v1/sandboxes/${started.sandboxId}`)).status).toBe(204)
  // The stream of a run that was deleted has no end that looks like one.
  const text = await reading.catch(() => '')
  expect(text).not.toContain('[DONE]')
  await until(() => app.runtime.runs.active(started.sandboxId).length === 0)
})
