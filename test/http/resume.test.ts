import { beforeAll, describe, expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'
import { cancel, chat, resume, startChat, threadOf } from '../support/chat.ts'
import { eventsOf, readEvents, textIn } from '../support/sse.ts'
import { until } from '../support/until.ts'

const app = useApp()
let id = ''
beforeAll(async () => {
  id = await app.sandbox()
})
const idle = (sandboxId = id) => until(() => app.runtime.runs.active(sandboxId).length === 0)

/** Without an id: a client that comes back asks for the same again, or for all. */
const beyond = { data: { type: 'error', errorText: expect.stringContaining('cannot go on after its Last-Event-ID') } }

describe('during a run', () => {
  test('without Last-Event-ID the whole run comes from its start, to each who asks', async () => {
    const words = 40
    const { response, runId, threadId } = await startChat(app, `/slow ${words}`, { sandboxId: id })
    const own = eventsOf(response)
    for await (const { data } of own) if (data.delta === '4 ') break
    const resumed = await resume(app, id)
    expect(resumed.status).toBe(200)
    expect(resumed.headers.get('content-type')).toBe('text/event-stream')
    expect(resumed.headers.get('x-run-id')).toBe(runId)
    expect(resumed.headers.get('x-thread-id')).toBe(threadId)
    const [first, second] = await Promise.all([readEvents(resumed), readEvents(await resume(app, id))])
    expect(first).toEqual(second)
    expect(first[0]).toEqual({ id: `${runId}/1`, data: { type: 'start' } })
    const said = Array.from({ length: words }, (_, index) => `${index + 1} `).join('')
    expect(textIn(first.map(({ data }) => data))).toBe(said)
  })

  test('with Last-Event-ID it goes on after it, without loss or double', async () => {
    const { response, runId } = await startChat(app, '/slow 12', { sandboxId: id })
    const all = []
    for await (const event of eventsOf(response)) if (all.push(event) === 5) break
    const rest = await readEvents(await resume(app, id, all.at(-1)?.id))
    const whole = [...all, ...rest]
    expect(whole.map(event => event.id)).toEqual(whole.map((_, n) => `${runId}/${n + 1}`))
    expect(textIn(whole.map(({ data }) => data))).toBe('1 2 3 4 5 6 7 8 9 10 11 12 ')
  })

  test('with a Last-Event-ID that it has not come to an error comes, and the run goes on', async () => {
    const { response, runId } = await startChat(app, '/slow 10', { sandboxId: id })
    expect(await readEvents(await resume(app, id, `${runId}/500`))).toEqual([beyond])
    expect(textIn((await readEvents(response)).map(({ data }) => data))).toBe('1 2 3 4 5 6 7 8 9 10 ')
  })

  test('a lost connection does not end the run', async () => {
    const started = await startChat(app, '/slow 5', { sandboxId: id })
    for await (const _ of eventsOf(started.response)) break
    await idle()
    expect((await threadOf(app, started)).messages[1].content).toBe('1 2 3 4 5 ')
  })

  test('of two threads the youngest run is resumed, unless threadId names one', async () => {
    const older = await startChat(app, '/slow 1000', { sandboxId: id })
    const younger = await startChat(app, '/slow 1000', { sandboxId: id })
    const runOf = async (query = '', last?: string) => {
      const response = await resume(app, id, last, query)
      await response.body?.cancel()
      return response.headers.get('x-run-id')
    }
    expect(await runOf()).toBe(younger.runId)
    expect(await runOf(`?threadId=${older.threadId}`)).toBe(older.runId)
    expect(await runOf(`?threadId=${younger.threadId}`)).toBe(younger.runId)
    expect(await runOf('', `${older.runId}/2`)).toBe(older.runId)
    await cancel(app, id)
    await Promise.all([older.response.text(), younger.response.text()])
  })

  test('readers that come and go in every moment all get all', async () => {
    const { response } = await startChat(app, '/slow 20', { sandboxId: id })
    const reading = readEvents(response)
    const whole = await Promise.all(
      Array.from({ length: 20 }, async (_, n) => {
        const seen = []
        let last: string | undefined
        for (;;) {
          const events = eventsOf(await resume(app, id, last))
          let count = 0
          for await (const event of events) {
            if (event.data === '[DONE]') return seen
            seen.push(event)
            last = event.id
            if (++count > n) break
          }
          if (count === 0) return seen
        }
      }),
    )
    const expected = await reading
    for (const seen of whole) expect(seen).toEqual(expected)
  })
})

describe('after its end', () => {
  test('with the Last-Event-ID of its middle the rest comes, for ten minutes', async () => {
    const { events, runId } = await chat(app, 'a b c d', { sandboxId: id })
    const rest = await readEvents(await resume(app, id, events[3]?.id))
    expect(rest).toEqual(events.slice(4))

    app.beside(db =>
      db.run('update runs set ended_at = ? where id = ?', [new Date(Date.now() - 601_000).toISOString(), runId]),
    )
    expect((await resume(app, id, events[3]?.id)).status).toBe(204)
  })

  test('with the Last-Event-ID of its last chunk only [DONE] comes', async () => {
    const { events } = await chat(app, 'a', { sandboxId: id })
    expect(await readEvents(await resume(app, id, events.at(-1)?.id))).toEqual([])
  })

  test('with a place beyond its end an error comes: what the client has is not what is stored', async () => {
    const { runId, events } = await chat(app, 'a', { sandboxId: id })
    expect(await readEvents(await resume(app, id, `${runId}/${events.length + 1}`))).toEqual([beyond])
    expect(await readEvents(await resume(app, id, `${runId}/999999`))).toEqual([beyond])
  })
})

describe('204 without a body', () => {
  const nothing: [string, () => Promise<Response> | Response][] = [
    ['when nothing runs', () => resume(app, id)],
    ['for a new sandbox', async () => resume(app, await app.sandbox())],
    ['for the name that clients use before they know a sandbox', () => resume(app, 'sandbox-echo')],
    ['for a Last-Event-ID of an unknown run', () => resume(app, id, 'run_01a1fc99-2ff3-76f4-aa4b-684e48d176d8/3')],
    ['for a name that nobody has used', () => resume(app, 'a-chat-of-mine')],
    ['for a sandbox that is gone', () => resume(app, 'sbx_01a1fc99-2ff3-76f4-aa4b-684e48d176d8')],
    ['for a Last-Event-ID that is none', () => resume(app, id, 'nonsense')],
    [
      'for a Last-Event-ID of another sandbox’s run',
      async () => {
        const other = await chat(app, 'secret', { sandboxId: await app.sandbox() })
        return resume(app, id, `${other.runId}/1`)
      },
    ],
    [
      'for a thread of which nothing runs',
      async () => {
        const { threadId } = await chat(app, 'a', { sandboxId: id })
        return resume(app, id, undefined, `?threadId=${threadId}`)
      },
    ],
  ]
  for (const [name, ask] of nothing) {
    test(name, async () => {
      const response = await ask()
      expect({ status: response.status, body: await response.text() }).toEqual({ status: 204, body: '' })
    })
  }
})

test('another team’s Last-Event-ID resumes nothing: regression', async () => {
  const { events } = await chat(app, 'secret', { sandboxId: id })
  const { status } = await app.ask('GET', `/v1/chat/echo/${id}/stream`, undefined, {
    key: app.foreignKey,
    headers: { 'last-event-id': events[0]!.id! },
  })
  expect(status).toBe(204)
})
