import { beforeAll, describe, expect, test } from 'bun:test'
import { toTitle } from '../../src/core/chat/title.ts'
import { useApp } from '../support/app.ts'
import { chat, contents, say, threadOf } from '../support/chat.ts'

const app = useApp()
let id = ''
beforeAll(async () => {
  id = await app.sandbox()
})
const nameOf = async (threadId: string) => (await threadOf(app, { sandboxId: id, threadId })).name

describe('a title', () => {
  const titles: [string, string][] = [
    ['Fix the tests', 'Fix the tests'],
    ['\n\n  # **Fix** the `tests`  \nand more', 'Fix the tests'],
    ['> - quoted', 'quoted'],
    ['---\n***\nafter signs', 'after signs'],
    ['tabs\tand  \u0007 spaces', 'tabs and spaces'],
    ['left\u202eright\u200b', 'leftright'],
    ['word '.repeat(100), 'word word word word word word word word word word word word'],
    ['x'.repeat(100), 'x'.repeat(60)],
    ['🙂'.repeat(100), '🙂'.repeat(60)],
    ['🇩🇪'.repeat(50), '🇩🇪'.repeat(30)],
    ['👨‍👩‍👧‍👦'.repeat(20), '👨‍👩‍👧‍👦'.repeat(8)],
    [`a${'\u0301'.repeat(100)}`, `a${'\u0301'.repeat(59)}`],
    ['می\u200cخواهم', 'می\u200cخواهم'],
    ['\u200d\u200c', ''],
    [' \n\t', ''],
    ['--- ###', ''],
  ]
  test.each(titles)('of %j is %j', (text, title) => {
    expect(toTitle(text)).toBe(title)
  })

  test('is found behind any number of empty lines', () => {
    expect(toTitle(`${'\n'.repeat(5000)}deep`)).toBe('deep')
  })

  test('is made of the first message, and stays', async () => {
    const { threadId } = await chat(app, 'How do I begin?', { sandboxId: id })
    expect(await nameOf(threadId)).toBe('How do I begin?')
    await chat(app, 'And then?', { sandboxId: id, threadId })
    expect(await nameOf(threadId)).toBe('How do I begin?')
  })

  test('is given to a thread that was made before, and not to one with a name, an empty one too', async () => {
    for (const [name, expected] of [
      [null, 'hello'],
      ['Given', 'Given'],
      ['', ''],
    ]) {
      const threadId = (await app.ask('POST', `/v1/sandboxes/${id}/threads`, { name })).body.id
      await chat(app, 'hello', { sandboxId: id, threadId })
      expect(await nameOf(threadId)).toBe(expected)
    }
  })

  test('waits for words', async () => {
    const image = { type: 'file', mediaType: 'image/png', url: 'data:image/png;base64,iVBORw0KGgo=' }
    const { threadId } = await chat(app, '', { sandboxId: id, messages: [{ role: 'user', parts: [image] }] })
    expect(await nameOf(threadId)).toBeNull()
    await chat(app, 'what is it?', { sandboxId: id, threadId })
    expect(await nameOf(threadId)).toBe('what is it?')
  })
})

test('a rename is kept, and is refused for an empty name, and for a thread or a branch that is not there', async () => {
  const { threadId } = await chat(app, 'first', { sandboxId: id })
  const path = `/v1/sandboxes/${id}/threads/${threadId}`
  const { status, body } = await app.ask('PATCH', path, { name: 'Renamed' })
  expect([status, body.name]).toEqual([200, 'Renamed'])
  await chat(app, 'second', { sandboxId: id, threadId })
  expect(await nameOf(threadId)).toBe('Renamed')
  for (const name of ['', null, 'x'.repeat(1001)]) expect((await app.ask('PATCH', path, { name })).status).toBe(400)
  expect((await app.ask('PATCH', `/v1/sandboxes/${id}/threads/thr_none`, { name: 'a' })).status).toBe(404)
  expect((await app.ask('PATCH', path, { name: 'a', branch: 'brn_none' })).status).toBe(404)
  expect(await nameOf(threadId)).toBe('Renamed')
  expect((await app.ask('PATCH', path, { name: 'a' }, { key: app.foreignKey })).status).toBe(404)
})

describe('a fork', () => {
  test('has the messages up to one, and goes on by itself', async () => {
    const first = await chat(app, '', { sandboxId: id, messages: [say('one', 'm1')] })
    const place = { sandboxId: id, threadId: first.threadId }
    await chat(app, '', { ...place, messages: [say('two', 'm2')] })
    const ids = (await threadOf(app, place)).messages.map((message: any) => message.id)
    const path = `/v1/sandboxes/${id}/threads/${first.threadId}/fork`
    const { status, body } = await app.ask('POST', path, { messageId: ids[1] })
    expect(status).toBe(201)
    expect(body).toMatchObject({ name: 'one', status: 'active' })
    expect(body.id).not.toBe(first.threadId)
    const fork = { sandboxId: id, threadId: body.id }
    expect(await contents(app, fork)).toEqual(['user: one', 'assistant: one'])
    const { chunks } = await chat(app, 'three', fork)
    // The echo engine counts the words of all that it is given.
    expect(chunks.find(({ type }) => type === 'message-metadata').messageMetadata.inputTokens).toBe(3)
    expect(await contents(app, fork)).toHaveLength(4)
    expect(await contents(app, place)).toHaveLength(4)
    expect((await app.ask('POST', path, { messageId: 'm2', name: 'Other way' })).body.name).toBe('Other way')
    expect((await app.ask('POST', path, { messageId: 'none' })).status).toBe(400)
    expect((await app.ask('POST', path, {})).status).toBe(400)
    const found = (await app.ask('GET', `/v1/threads?q=three&sandboxId=${id}`)).body.threads
    expect(found.map((thread: any) => thread.id)).toEqual([fork.threadId])
  })

  test('belongs to the same end user: regression', async () => {
    const own = await app.sandbox({ externalUserId: 'u1' })
    const { threadId } = await chat(app, '', { sandboxId: own, externalUserId: 'u1', messages: [say('a', 'm1')] })
    const { body } = await app.ask('POST', `/v1/sandboxes/${own}/threads/${threadId}/fork`, { messageId: 'm1' })
    const as = async (userId: string) => (await app.ask('POST', '/v1/tokens', { userId })).body.token
    const path = `/v1/sandboxes/${own}/threads/${body.id}`
    expect((await app.ask('GET', path, undefined, { key: await as('u1') })).status).toBe(200)
    const stranger = await as('u2')
    expect((await app.ask('POST', `${path}/fork`, { messageId: 'm1' }, { key: stranger })).status).toBe(404)
    expect((await app.ask('GET', `${path}/messages`, undefined, { key: stranger })).status).toBe(404)
  })
})

test('messages come in pages, the newest first', async () => {
  const { threadId } = await chat(app, '', { sandboxId: id, messages: [say('one', 'm1')] })
  await chat(app, '', { sandboxId: id, threadId, messages: [say('two', 'm2')] })
  const path = `/v1/sandboxes/${id}/threads/${threadId}/messages`
  const { body } = await app.ask('GET', `${path}?limit=3`)
  expect(body.messages.map((message: any) => message.content)).toEqual(['one', 'two', 'two'])
  const before = await app.ask('GET', `${path}?before=${body.nextBefore}`)
  expect(before.body).toMatchObject({ messages: [{ id: 'm1', content: 'one' }], nextBefore: null })
  expect((await app.ask('GET', `${path}?before=none`)).status).toBe(400)
})
