import { describe, expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'
import { contents, threadOf } from '../support/chat.ts'
import { type Ai, headlessChat, textOf } from './headless-chat.ts'
import { versions } from './versions.ts'

const app = useApp()

/** A chat with three questions and their answers. */
async function scene(ai: Ai) {
  const sandboxId = await app.sandbox()
  const { body: thread } = await app.ask('POST', `/v1/sandboxes/${sandboxId}/threads`, {})
  const place = { sandboxId, threadId: thread.id as string }
  const chat = headlessChat(ai, { api: `${app.url}/v1/chat/echo`, key: app.key, id: sandboxId, body: place })
  for (const text of ['one', 'two', 'three']) await chat.sendMessage({ text })
  const stored = () => contents(app, place)
  const shown = () => chat.messages.map(message => `${message.role}: ${textOf(message)}`)
  return { chat, stored, shown, place }
}

describe.each(versions)('ai $version', ({ ai }) => {
  test('an edit takes the place of its message and of all that followed', async () => {
    const { chat, stored, shown } = await scene(ai)
    const { id } = chat.messages[2]!
    await chat.sendMessage({ text: 'two, but better', messageId: id })
    expect([chat.status, chat.error, shown()]).toEqual(['ready', undefined, await stored()])
    expect(await stored()).toEqual([
      'user: one',
      'assistant: one',
      'user: two, but better',
      'assistant: two, but better',
    ])
    await chat.sendMessage({ text: 'four' })
    expect((await stored()).slice(4)).toEqual(['user: four', 'assistant: four'])
    expect(shown()).toEqual(await stored())
  })

  test('an edit of the first message begins the conversation anew', async () => {
    const { chat, stored, shown, place } = await scene(ai)
    await chat.sendMessage({ text: 'zero', messageId: chat.messages[0]!.id })
    expect([await stored(), shown()]).toEqual([
      ['user: zero', 'assistant: zero'],
      ['user: zero', 'assistant: zero'],
    ])
    expect((await threadOf(app, place)).messages[0].id).toBe(chat.messages[0]!.id)
  })

  test('a page that shows an earlier branch goes on from it', async () => {
    const { chat, stored, shown, place } = await scene(ai)
    await chat.sendMessage({ text: 'two, but better', messageId: chat.messages[2]!.id })
    await chat.regenerate()
    const { messages } = await threadOf(app, place)
    expect([messages[2].branches.length, messages[3].branches.length]).toEqual([2, 2])
    const path = `/v1/sandboxes/${place.sandboxId}/threads/${place.threadId}`
    await app.ask('PATCH', path, { branch: messages[2].branches[0] })
    chat.messages = (await threadOf(app, place)).messages
    await chat.sendMessage({ text: 'four' })
    const whole = ['one', 'two', 'three', 'four'].flatMap(text => [`user: ${text}`, `assistant: ${text}`])
    expect([chat.status, await stored(), shown()]).toEqual(['ready', whole, whole])
    await app.ask('PATCH', path, { branch: messages[3].branches[0] })
    expect(await stored()).toEqual([
      ...['user: one', 'assistant: one', 'user: two, but better', 'assistant: two, but better'],
    ])
  })

  test('any reply can be made anew, by its id or by its question’s', async () => {
    const { chat, stored, shown } = await scene(ai)
    await chat.regenerate()
    expect((await stored()).slice(4)).toEqual(['user: three', 'assistant: three'])
    await chat.regenerate({ messageId: chat.messages[3]!.id })
    expect(await stored()).toEqual(['user: one', 'assistant: one', 'user: two', 'assistant: two'])
    await chat.regenerate({ messageId: chat.messages[0]!.id })
    expect([chat.status, await stored()]).toEqual(['ready', ['user: one', 'assistant: one']])
    expect(shown()).toEqual(await stored())
  })
})
