import { beforeAll, describe, expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'
import { chat, contents, say, threadOf } from '../support/chat.ts'
import { textIn, typesIn } from '../support/sse.ts'

const app = useApp()
let id = ''
beforeAll(async () => {
  id = await app.sandbox()
})
const post = (fields: object) => app.ask('POST', '/v1/chat/echo', { messages: [say('hi')], ...fields })

describe('messages', () => {
  test('the whole history of a new thread is taken', async () => {
    const history = [say('one', 'm1'), { id: 'm2', role: 'assistant', parts: [{ type: 'text', text: 'two' }] }]
    const { chunks, ...ids } = await chat(app, '', { sandboxId: id, messages: [...history, say('three', 'm3')] })
    expect(textIn(chunks)).toBe('three')
    expect(await contents(app, ids)).toEqual(['user: one', 'assistant: two', 'user: three', 'assistant: three'])
  })

  test('the whole history that comes again with a second turn is not doubled', async () => {
    const first = await chat(app, '', { sandboxId: id, messages: [say('one', 'm1')] })
    const asShown = { id: 'made-by-client', role: 'assistant', parts: [{ type: 'text', text: 'one' }] }
    const messages = [say('one', 'm1'), asShown, say('two', 'm2')]
    const { chunks } = await chat(app, '', { sandboxId: id, threadId: first.threadId, messages })
    expect(textIn(chunks)).toBe('two')
    expect(await contents(app, first)).toEqual(['user: one', 'assistant: one', 'user: two', 'assistant: two'])
  })

  test('without ids get some, and the last one alone is added', async () => {
    const first = await chat(app, 'one', { sandboxId: id })
    await chat(app, '', { sandboxId: id, threadId: first.threadId, messages: [say('one'), say('two')] })
    expect(await contents(app, first)).toEqual(['user: one', 'assistant: one', 'user: two', 'assistant: two'])
    const ids = (await threadOf(app, first)).messages.map((message: any) => message.id)
    expect(new Set(ids).size).toBe(4)
    expect(ids.every((each: string) => each.startsWith('msg_'))).toBe(true)
  })

  test('posted twice by a retry, a message is there once', async () => {
    const first = await chat(app, '', { sandboxId: id, messages: [say('one', 'm1')] })
    await chat(app, '', { sandboxId: id, threadId: first.threadId, messages: [say('one', 'm1')] })
    expect((await contents(app, first)).filter((each: string) => each === 'user: one')).toHaveLength(1)
  })

  test('regenerate answers the last one anew, without what was answered to it', async () => {
    const first = await chat(app, '', { sandboxId: id, messages: [say('one', 'm1')] })
    await chat(app, '', { sandboxId: id, threadId: first.threadId, messages: [say('two', 'm2')] })
    const again = await chat(app, '', {
      sandboxId: id,
      threadId: first.threadId,
      trigger: 'regenerate-message',
      messages: [say('one', 'm1'), say('two', 'm2')],
    })
    expect(textIn(again.chunks)).toBe('two')
    expect(await contents(app, first)).toEqual(['user: one', 'assistant: one', 'user: two', 'assistant: two'])
  })

  const reply = (text: string, id: string) => ({ id, role: 'assistant', parts: [{ type: 'text', text }] })

  /** A thread with two questions, m1 and m2, and their answers. */
  async function twoTurns() {
    const first = await chat(app, '', { sandboxId: id, messages: [say('one', 'm1')] })
    const place = { sandboxId: id, threadId: first.threadId }
    await chat(app, '', { ...place, messages: [say('two', 'm2')] })
    return { ...place, ids: (await threadOf(app, place)).messages.map((message: any) => message.id) as string[] }
  }

  test('regenerate finds what is meant by any message’s id, also in a history that has it', async () => {
    const { ids, ...place } = await twoTurns()
    const history = [say('one', 'm1'), reply('one', ids[1]!), say('two', 'm2'), reply('two', ids[3]!)]
    const regenerate = (fields: object) =>
      chat(app, '', { ...place, trigger: 'regenerate-message', messages: history, ...fields })
    for (const messageId of [undefined, null, ids[3], 'm2', 'unknown']) {
      expect(textIn((await regenerate({ messageId })).chunks)).toBe('two')
      expect(await contents(app, place)).toEqual(['user: one', 'assistant: one', 'user: two', 'assistant: two'])
    }
    expect(textIn((await regenerate({ messageId: ids[1] })).chunks)).toBe('one')
    expect(await contents(app, place)).toEqual(['user: one', 'assistant: one'])
  })

  test('an edit names its message, and sends it alone or with what was before', async () => {
    const { ids, ...place } = await twoTurns()
    const edit = (messages: object[], messageId: string) => chat(app, '', { ...place, messages, messageId })
    await edit([say('one', 'm1'), reply('one', ids[1]!), say('second', 'm2')], 'm2')
    expect((await contents(app, place)).slice(2)).toEqual(['user: second', 'assistant: second'])
    await edit([say('first', 'another')], 'm1')
    expect(await contents(app, place)).toEqual(['user: first', 'assistant: first'])
    expect((await threadOf(app, place)).messages[0].id).toBe('another')
  })

  const rephrased: [string, object][] = [
    ['named by an edit', { messageId: 'm2' }],
    ['named by an edit, and sent without an id', { messageId: 'm2', messages: [say('second')] }],
    ['that is answered anew', { messageId: 'm2', trigger: 'regenerate-message' }],
    ['answered anew without a messageId', { trigger: 'regenerate-message' }],
    ['sent again', {}],
    ['sent again as a submitted one', { trigger: 'submit-message' }],
  ]
  test.each(rephrased)(
    'a known message of another wording, %s, is stored in its place with its id',
    async (_, fields) => {
      const { ids, ...place } = await twoTurns()
      await chat(app, '', { ...place, messages: [say('three', 'm3')] })
      const { chunks } = await chat(app, '', { ...place, messages: [say('second', 'm2')], ...fields })
      expect(textIn(chunks)).toBe('second')
      expect(await contents(app, place)).toEqual(['user: one', 'assistant: one', 'user: second', 'assistant: second'])
      const after = (await threadOf(app, place)).messages.map((message: any) => message.id)
      expect(after.slice(0, 3)).toEqual(['m1', ids[1], 'm2'])
    },
  )

  test('an edit that is sent with the id of an earlier message keeps its own', async () => {
    const { ids, ...place } = await twoTurns()
    await chat(app, '', { ...place, messages: [say('second', 'm1')], messageId: 'm2' })
    expect(await contents(app, place)).toEqual(['user: one', 'assistant: one', 'user: second', 'assistant: second'])
    expect((await threadOf(app, place)).messages[2].id).toBe('m2')
  })

  test('a question that is sent with the id of a reply changes no reply', async () => {
    const { ids, ...place } = await twoTurns()
    await chat(app, '', { ...place, messages: [say('three', ids[1])] })
    expect(await contents(app, place)).toEqual([
      ...['user: one', 'assistant: one', 'user: two', 'assistant: two'],
      ...['user: three', 'assistant: three'],
    ])
  })

  test('regenerate finds its question in the thread when the client sends none of its ids', async () => {
    const { ids, ...place } = await twoTurns()
    const regenerate = async (fields: object) => {
      const { chunks } = await chat(app, '', { ...place, trigger: 'regenerate-message', ...fields })
      return textIn(chunks)
    }
    expect(await regenerate({ messages: [say('two')] })).toBe('two')
    expect(await contents(app, place)).toEqual(['user: one', 'assistant: one', 'user: two', 'assistant: two'])
    expect(await regenerate({ messages: [say('whatever')], messageId: ids[1] })).toBe('one')
    expect(await contents(app, place)).toEqual(['user: one', 'assistant: one'])
    expect((await threadOf(app, place)).messages[0].id).toBe('m1')
    expect(await regenerate({ messages: [say('other')] })).toBe('other')
    expect(await contents(app, place)).toEqual(['user: one', 'assistant: one', 'user: other', 'assistant: other'])
  })

  test('an edit of a message that the thread does not have is a new message', async () => {
    const { ids, ...place } = await twoTurns()
    for (const messageId of ['unknown', ids[1]]) await chat(app, '', { ...place, messages: [say('three')], messageId })
    expect((await contents(app, place)).filter(said => said === 'user: three')).toHaveLength(2)
    expect((await contents(app, place)).slice(0, 4)).toEqual([
      'user: one',
      'assistant: one',
      'user: two',
      'assistant: two',
    ])
  })

  const continued: [string, object][] = [
    ['on its thread', {}],
    ['with the reply named', { messageId: 'r' }],
    ['by another trigger', { trigger: 'submit-message' }],
    ['without a thread', { threadId: undefined }],
    ['without a sandbox', { threadId: undefined, sandboxId: undefined }],
  ]
  test.each(continued)('that end in a reply, posted %s, run nothing and make nothing: 409', async (_, fields) => {
    const { ids, ...place } = await twoTurns()
    const before = await contents(app, place)
    const made = app.environmentIds.length
    const { status, body } = await post({ ...place, messages: [say('two', 'm2'), reply('two', 'r')], ...fields })
    expect({ status, code: body.error.code }).toEqual({ status: 409, code: 'nothing_to_continue' })
    expect([await contents(app, place), app.environmentIds.length]).toEqual([before, made])
    expect((await threadOf(app, place)).status).toBe('completed')
  })

  test('the same message ids in two threads are two messages', async () => {
    const a = await chat(app, '', { sandboxId: id, messages: [say('a', 'same')] })
    const b = await chat(app, '', { sandboxId: id, messages: [say('b', 'same')] })
    expect([(await contents(app, a))[0], (await contents(app, b))[0]]).toEqual(['user: a', 'user: b'])
  })

  const images: [string, object][] = [
    ['a file part', { type: 'file', mediaType: 'image/png', url: 'data:image/png;base64,iVBORw0KGgo=' }],
    [
      'a data-image part',
      { type: 'data-image', data: { url: 'data:image/png;base64,iVBORw0KGgo=', mediaType: 'image/png' } },
    ],
  ]
  for (const [name, part] of images) {
    test(`an image alone, as ${name}, is enough and is kept whole`, async () => {
      const { chunks, ...ids } = await chat(app, '', { sandboxId: id, messages: [{ role: 'user', parts: [part] }] })
      expect(typesIn(chunks)).toEqual(['start', 'message-metadata', 'finish'])
      expect((await threadOf(app, ids)).messages[0].parts).toEqual([part])
    })
  }

  test('parts of other types are kept as they are', async () => {
    const parts = [
      { type: 'text', text: 'a' },
      { type: 'data-own', data: { deep: [1, { x: null }] } },
      { type: 'step-start' },
    ]
    const { chunks, ...ids } = await chat(app, '', {
      sandboxId: id,
      messages: [{ role: 'user', parts, metadata: { x: 1 } }],
    })
    expect(textIn(chunks).trim()).toBe('a')
    expect((await threadOf(app, ids)).messages[0].parts).toEqual(parts)
  })

  const unanswerable: [string, object[]][] = [
    ['empty text', [say('')]],
    ['only space', [say(' \n\t')]],
    ['no parts', [{ role: 'user', parts: [] }]],
    ['only other parts', [{ role: 'user', parts: [{ type: 'data-own', data: 1 }] }]],
    ['no user message', [{ role: 'assistant', parts: [{ type: 'text', text: 'a' }] }]],
  ]
  for (const [name, messages] of unanswerable) {
    test(`with ${name} are 400`, async () => {
      const { status, body } = await post({ sandboxId: id, messages })
      expect({ status, field: body.error.field }).toEqual({ status: 400, field: 'messages' })
    })
  }
})
