import { beforeEach, describe, expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'
import { say } from '../support/chat.ts'
import { leftovers, processesNamed, tracesOf } from '../support/leftovers.ts'
import { until } from '../support/until.ts'

const app = useApp()

/** What may come of a request on what is being deleted. */
const sound = [200, 201, 202, 204, 404, 409, 503]
beforeEach(() => void app.log.splice(0))
const faults = () => app.log.filter(line => line.startsWith('error'))

test('a sandbox that is deleted under every kind of request leaves nothing, and no fault of the server', async () => {
  for (let round = 0; round < 8; round++) {
    const { id, sandboxId } = (await app.ask('POST', '/v1/sandboxes', { agent: 'echo' })).body
    const path = `/v1/sandboxes/${id}`
    const thread = (await app.ask('POST', `${path}/threads`, {})).body.id
    const requests = () => [
      app.ask('POST', `${path}/exec`, { command: 'sleep 0.05; echo x' }),
      app.ask('POST', `${path}/files`, { path: '/a', content: 'x'.repeat(1_000_000) }),
      app.ask('GET', `${path}/files?path=/etc/passwd`),
      app.ask('POST', `${path}/threads`, {}),
      app.ask('GET', path),
      app.ask('POST', '/v1/chat/echo', { sandboxId: id, messages: [say('a\n$ echo b\n/slow 3')] }),
      app.ask('POST', '/v1/chat/echo', { sandboxId: id, threadId: thread, messages: [say('/slow 3')] }),
      app.ask('DELETE', `/v1/chat/echo/${id}/stream`),
      app.ask('DELETE', `${path}/threads/${thread}`),
    ]
    const before = requests()
    // Each round meets the requests at another moment.
    await Bun.sleep(round * 3)
    const deleting = app.ask('DELETE', path)
    const after = requests()
    expect((await deleting).status).toBe(204)
    expect(await leftovers(sandboxId)).toEqual([])
    // A stream that is cut by the deletion may end as a broken connection.
    const answers = await Promise.allSettled([...before, ...after])
    for (const answer of answers) if (answer.status === 'fulfilled') expect(sound).toContain(answer.value.status)
    expect(faults()).toEqual([])
  }
})

describe('a sandbox that is deleted under a long operation ends it with an error of its own, not a fault', () => {
  const operations: [string, string, object?][] = [
    ['POST', '/exec', { command: 'yes' }],
    ['GET', '/files/list?path=/usr/share&depth=9'],
    ['GET', '/files?path=/large'],
    ['POST', '/files', { path: '/new', content: 'x'.repeat(9_000_000) }],
    ['POST', '/git/clone', { url: 'http://localhost:1/x' }],
  ]
  for (const [method, rest, body] of operations) {
    test(`${method} ${rest}`, async () => {
      for (let round = 0; round < 5; round++) {
        const id = await app.sandbox({ setup: ['truncate -s 9M /large'] })
        const operation = app.ask(method, `/v1/sandboxes/${id}${rest}`, body)
        // Each round meets it at another moment.
        await Bun.sleep(round * 2)
        await app.ask('DELETE', `/v1/sandboxes/${id}`)
        const answer = await operation
        expect([...sound, 400]).toContain(answer.status)
      }
      expect(faults()).toEqual([])
    })
  }
})

test('a thread that is deleted while chats come to it ends them well', async () => {
  const id = await app.sandbox()
  for (let round = 0; round < 10; round++) {
    const { body } = await app.ask('POST', `/v1/sandboxes/${id}/threads`, {})
    const fields = { sandboxId: id, threadId: body.id, mode: 'background', messages: [say('/slow 1000')] }
    const answers = await Promise.all([
      app.ask('POST', '/v1/chat/echo', fields),
      app.ask('DELETE', `/v1/sandboxes/${id}/threads/${body.id}`),
      app.ask('POST', '/v1/chat/echo', fields),
    ])
    for (const { status } of answers) expect(sound).toContain(status)
    expect((await app.ask('GET', `/v1/sandboxes/${id}/threads/${body.id}`)).status).toBe(404)
  }
  expect((await app.ask('DELETE', `/v1/chat/echo/${id}/stream`)).body).toEqual({ status: 'idle', runs: [] })
  expect(faults()).toEqual([])
})

test('a chat whose client goes away while its sandbox is set up leaves nothing', async () => {
  const marker = `sleep-${crypto.randomUUID()}`
  app.agent('slow-set-up', { setup: [`exec -a ${marker} sleep 1000`] })
  const abort = new AbortController()
  const chatting = app.request('POST', '/v1/chat/slow-set-up', {
    body: { messages: [say('hi')] },
    signal: abort.signal,
  })
  chatting.catch(() => {})
  await until(() => processesNamed(marker).length > 0)
  abort.abort()
  await until(() => tracesOf(app.environmentIds.at(-1)!).length === 0, 'nothing is left')
  expect(faults()).toEqual([])
})

test('cancels and chats on one thread, all at once, leave it idle and usable', async () => {
  const id = await app.sandbox()
  const thread = (await app.ask('POST', `/v1/sandboxes/${id}/threads`, {})).body.id
  const fields = { sandboxId: id, threadId: thread, messages: [say('/slow 1000')] }
  const answers = await Promise.all(
    Array.from({ length: 30 }, async (_, n) => {
      if (n % 3 === 0) return app.ask('DELETE', `/v1/chat/echo/${id}/stream`)
      const abort = new AbortController()
      const response = await app.request('POST', '/v1/chat/echo', { body: fields, signal: abort.signal })
      abort.abort()
      return { status: response.status }
    }),
  )
  for (const { status } of answers) expect([200, 409]).toContain(status)
  await app.ask('DELETE', `/v1/chat/echo/${id}/stream`)
  const last = await app.ask('POST', '/v1/chat/echo', { ...fields, messages: [say('last')] })
  expect(last.body).toContain('[DONE]')
  expect(faults()).toEqual([])
})
