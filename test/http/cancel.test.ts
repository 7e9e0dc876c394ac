import { beforeAll, describe, expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'
import { cancel, chat, resume, say, startChat, threadOf } from '../support/chat.ts'
import { processesNamed } from '../support/leftovers.ts'
import { eventsOf, readChunks, readEvents, textIn, typesIn } from '../support/sse.ts'
import { until } from '../support/until.ts'

const app = useApp()
let id = ''
beforeAll(async () => {
  id = await app.sandbox()
})
const nothing = { status: 'idle', runs: [] }

test('answers a receipt once the run has ended, and is idle after it', async () => {
  const { response, runId, threadId } = await startChat(app, '/slow 4000', { sandboxId: id })
  for await (const { data } of eventsOf(response)) if (data.delta === '3 ') break
  const startMs = performance.now()
  const { status, body } = await cancel(app, id)
  // The reply would go on for minutes.
  expect(performance.now() - startMs).toBeLessThan(30_000)
  expect(status).toBe(200)
  expect(body).toEqual({
    status: 'cancelled',
    runs: [{ runId, threadId, chunks: expect.any(Number), durationMs: expect.any(Number) }],
  })
  const events = await readEvents(await resume(app, id, `${runId}/1`))
  expect(events.at(-1)?.id).toBe(`${runId}/${body.runs[0].chunks}`)
  expect((await cancel(app, id)).body).toEqual(nothing)
})

test('its readers get the closing chunks, and the partial reply is in the thread', async () => {
  const { response, ...ids } = await startChat(app, '/slow 4000', { sandboxId: id })
  const second = readChunks(await resume(app, id))
  await until(async () => app.runtime.runs.activeOn(ids.threadId)!.log.count > 4)
  await cancel(app, id)
  const thread = await threadOf(app, ids)
  const chunks = await readChunks(response)
  expect(typesIn(chunks).slice(-4)).toEqual(['text-end', 'message-metadata', 'abort', 'finish'])
  expect(await second).toEqual(chunks)
  expect(thread).toMatchObject({ status: 'cancelled', usage: { outputTokens: expect.any(Number) } })
  expect(thread.messages[1]).toMatchObject({ role: 'assistant', content: textIn(chunks) })
})

for (const [name, command] of [
  ['itself', (marker: string) => `exec -a ${marker} sleep 1000`],
  ['and what fled from it', (marker: string) => `setsid -f bash -c 'exec -a ${marker} sleep 1000'; sleep 1000`],
] as const) {
  test(`a tool’s process, ${name}, is dead when the answer comes`, async () => {
    const marker = `sleep-${crypto.randomUUID()}`
    const { response, ...ids } = await startChat(app, `before\n$ ${command(marker)}`, { sandboxId: id })
    await until(() => processesNamed(marker).length === 1)
    const { body } = await cancel(app, id)
    expect(processesNamed(marker)).toEqual([])
    expect(body.status).toBe('cancelled')
    const chunks = await readChunks(response)
    expect(typesIn(chunks).slice(-4)).toEqual(['tool-output-error', 'message-metadata', 'abort', 'finish'])
    expect(chunks.at(-4)).toMatchObject({ errorText: 'cancelled' })
    expect((await threadOf(app, ids)).messages[1].parts).toMatchObject([
      { type: 'text', text: 'before\n' },
      { type: 'tool-Bash', state: 'output-error', errorText: 'cancelled' },
    ])
  })
}

test('several at once answer the same receipt, those that come after it are idle', async () => {
  const { response } = await startChat(app, '/slow 4000', { sandboxId: id })
  const answers = await Promise.all([cancel(app, id), cancel(app, id), cancel(app, id)])
  const receipts = answers.map(({ body }) => body).filter(({ status }) => status === 'cancelled')
  expect(receipts.length).toBeGreaterThan(0)
  for (const receipt of receipts) expect(receipt).toEqual(receipts[0])
  expect(answers.every(({ body }) => body.status === 'cancelled' || Bun.deepEquals(body, nothing))).toBe(true)
  await response.text()
})

test('the next message works at once', async () => {
  const { response, threadId } = await startChat(app, '/slow 4000', { sandboxId: id })
  await cancel(app, id)
  expect(textIn((await chat(app, 'next', { sandboxId: id, threadId })).chunks)).toBe('next')
  await response.text()
})

test('of two threads both are cancelled, or the one that threadId names', async () => {
  const start = () => startChat(app, '/slow 4000', { sandboxId: id })
  const [a, b, c] = [await start(), await start(), await start()]
  const one = (await cancel(app, id, `?threadId=${b.threadId}`)).body
  expect(one.runs.map(({ runId }: any) => runId)).toEqual([b.runId])
  expect((await cancel(app, id, `?threadId=${b.threadId}`)).body).toEqual(nothing)
  const rest = (await cancel(app, id)).body
  expect(rest.runs.map(({ runId }: any) => runId).sort()).toEqual([a.runId, c.runId].sort())
  for (const { response } of [a, b, c]) await response.text()
})

test('a background run is cancelled too', async () => {
  const { body } = await app.ask('POST', '/v1/chat/echo', {
    sandboxId: id,
    mode: 'background',
    messages: [say('/slow 4000')],
  })
  expect((await cancel(app, id)).body.runs).toMatchObject([{ threadId: body.threadId }])
  expect((await threadOf(app, body)).status).toBe('cancelled')
})

test('a client that only closes its request cancels nothing', async () => {
  const { response, threadId } = await startChat(app, '/slow 4000', { sandboxId: id })
  await response.body?.cancel()
  await until(() => app.runtime.runs.activeOn(threadId)?.readerCount === 0)
  expect((await cancel(app, id)).body.runs).toMatchObject([{ threadId }])
})

describe('idle', () => {
  test('when nothing runs', async () => {
    expect(await cancel(app, id)).toMatchObject({ status: 200, body: nothing })
  })

  test('for the name that clients use before they know a sandbox', async () => {
    expect(await cancel(app, 'sandbox-echo')).toMatchObject({ status: 200, body: nothing })
  })

  test('after a run that completed, which stays completed', async () => {
    const done = await chat(app, 'a', { sandboxId: id })
    expect((await cancel(app, id)).body).toEqual(nothing)
    expect((await threadOf(app, done)).status).toBe('completed')
  })
})

test('a sandbox that is deleted ends its runs, whose readers get their end', async () => {
  const sandboxId = await app.sandbox()
  const { response } = await startChat(app, '/slow 4000', { sandboxId })
  expect((await app.ask('DELETE', `/v1/sandboxes/${sandboxId}`)).status).toBe(204)
  expect(typesIn(await readChunks(response)).slice(-2)).toEqual(['abort', 'finish'])
})
