import { beforeAll, expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'
import { chat } from '../support/chat.ts'

const app = useApp()
const COUNT = 50_000
let id = ''
let threadId = ''

beforeAll(async () => {
  id = await app.sandbox()
  threadId = (await app.ask('POST', `/v1/sandboxes/${id}/threads`, { name: 'long' })).body.id
  app.beside(db => {
    db.run(
      `with recursive n (i) as (select 1 union all select i + 1 from n where i < ${COUNT})
       insert into messages (thread_id, id, position, run_id, role, parts, metadata, created_at)
       select ?, 'm' || i, i, null, iif(i % 2, 'user', 'assistant'),
         json_array(json_object('type', 'text', 'text', 'message ' || i || ' ' || hex(zeroblob(100)))), null, '2026-01-01T00:00:00.000Z'
       from n`,
      [threadId],
    )
  })
})
const path = (query = '') => `/v1/sandboxes/${id}/threads/${threadId}${query}`

test('limit and before give the newest messages of a thread, then those before them', async () => {
  const { status, body } = await app.ask('GET', path('?limit=3'))
  expect(status).toBe(200)
  expect(body.messages.map((message: any) => message.id)).toEqual(['m49998', 'm49999', 'm50000'])
  expect(body.nextBefore).toBe('m49998')
  expect(body.messages[2].content).toStartWith('message 50000 ')
  const before = await app.ask('GET', path('?limit=2&before=m49998'))
  expect(before.body.messages.map((message: any) => message.id)).toEqual(['m49996', 'm49997'])
  expect((await app.ask('GET', path('?limit=2&before=m3'))).body).toMatchObject({
    messages: [{}, {}],
    nextBefore: null,
  })
  expect((await app.ask('GET', path('?before=nothing'))).status).toBe(400)
  expect((await app.ask('GET', path('?limit=0'))).status).toBe(400)
})

test('without limit all of it comes, as always, and others run meanwhile', async () => {
  const response = await app.request('GET', path())
  const decoder = new TextDecoder()
  let text = ''
  let pieces = 0
  for await (const bytes of response.body!) {
    pieces += 1
    text += decoder.decode(bytes, { stream: true })
  }
  expect(pieces).toBeGreaterThan(20)
  const body = JSON.parse(text)
  expect(Object.keys(body).sort()).toEqual(
    ['completedAt', 'createdAt', 'error', 'id', 'messages', 'name', 'status', 'updatedAt', 'usage'].sort(),
  )
  expect(body.messages.map((message: any) => message.id)).toEqual(Array.from({ length: COUNT }, (_, i) => `m${i + 1}`))
})

test('a thread that is deleted while it is read does not look whole', async () => {
  const made = (await app.ask('POST', `/v1/sandboxes/${id}/threads`)).body.id
  app.beside(db =>
    db.run(
      `insert into messages (thread_id, id, position, run_id, role, parts, metadata, created_at)
       select ?, id, position, null, role, parts, metadata, created_at from messages
       where thread_id = ? and position <= 20000`,
      [made, threadId],
    ),
  )
  const response = await app.request('GET', `/v1/sandboxes/${id}/threads/${made}`)
  const reader = response.body!.getReader()
  await reader.read()
  app.beside(db => db.run('delete from threads where id = ?', [made]))
  const rest = async () => {
    for (;;) if ((await reader.read()).done) return 'whole'
  }
  await expect(rest()).rejects.toThrow()
})

test('a chat reads no more of a thread than an engine can use', async () => {
  // The echo engine counts the words of all that it is given.
  const { chunks } = await chat(app, 'hello', { sandboxId: id, threadId })
  const { messageMetadata } = chunks.find(({ type }) => type === 'message-metadata')
  expect(messageMetadata.inputTokens).toBe(2000 * 3 + 1)
})

test('a sandbox’s threads are listed by limit and before, and all of them without', async () => {
  const own = await app.sandbox()
  const made = Array.from({ length: 1203 }, (_, i) => `thr_${String(i).padStart(5, '0')}`)
  app.beside(db => {
    for (const each of made)
      db.run(
        `insert into threads (id, sandbox_id, status, created_at, updated_at) values (?, ?, 'active', 'now', 'now')`,
        [each, own],
      )
  })
  const ids = async (query: string) =>
    (await app.ask('GET', `/v1/sandboxes/${own}/threads${query}`)).body.map((thread: any) => thread.id)
  const newest = made.toReversed()
  expect(await ids('')).toEqual(newest)
  expect(await ids('?limit=2')).toEqual(newest.slice(0, 2))
  expect(await ids(`?limit=3&before=${newest[1]}`)).toEqual(newest.slice(2, 5))
  expect((await app.ask('GET', `/v1/sandboxes/${own}/threads?limit=x`)).status).toBe(400)
  const response = await app.request('GET', `/v1/sandboxes/${own}`)
  let [text, pieces] = ['', 0]
  const decoder = new TextDecoder()
  for await (const bytes of response.body!) {
    text += decoder.decode(bytes, { stream: true })
    pieces += 1
  }
  const detail = JSON.parse(text)
  expect(detail).toMatchObject({ id: own, status: 'active', agent: { slug: 'echo' }, isolation: {}, network: {} })
  expect(detail.threads.map((thread: any) => thread.id)).toEqual(newest)
  // Pieces that wait for their reader are joined.
  expect(pieces).toBeGreaterThan(1)
})
