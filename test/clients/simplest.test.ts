import { describe, expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'
import { contents, threadOf } from '../support/chat.ts'
import { type Ai, type ChatOptions, headlessChat, textOf } from './headless-chat.ts'
import { versions } from './versions.ts'

const app = useApp()

const join = (ai: Ai, options: Partial<ChatOptions> = {}) =>
  headlessChat(ai, { api: `${app.url}/v1/chat/echo`, key: app.key, ...options })

const placeOf = (chat: ReturnType<typeof join>) =>
  chat.lastMessage?.metadata as { sandboxId: string; threadId: string; messageId: string }

const shown = (chat: ReturnType<typeof join>) => chat.messages.map(message => `${message.role}: ${textOf(message)}`)

/** A chat that found nothing to come back to. Version 5.0.0 does not take back what it says while it looks. */
const unresumed = (version: string) => (version === '5.0.0' ? 'submitted' : 'ready')

describe.each(versions)('ai $version, with an address and nothing else', ({ ai, version }) => {
  test.concurrent('a chat is one thread of one sandbox, and remembers', async () => {
    const chat = join(ai)
    await chat.sendMessage({ text: '$ echo kept > note' })
    await chat.sendMessage({ text: '$ cat note' })
    await chat.sendMessage({ text: 'so' })
    expect([chat.status, chat.error]).toEqual(['ready', undefined])
    expect(chat.messages[3]?.parts[0]).toMatchObject({ type: 'tool-Bash', output: 'kept\n' })
    const place = placeOf(chat)
    expect(await contents(app, place)).toEqual(shown(chat))
    expect((await threadOf(app, place)).messages.at(-1).id).toBe(place.messageId)
    await chat.sendMessage({ text: 'then', messageId: chat.messages[4]!.id })
    await chat.regenerate()
    expect(await contents(app, place)).toEqual(shown(chat))
    const answers = chat.messages.filter(message => message.role === 'assistant')
    const sandboxIds = answers.map(({ metadata }) => (metadata as { sandboxId: string }).sandboxId)
    expect([...new Set(sandboxIds)]).toEqual([place.sandboxId])
  })

  test.concurrent('it comes back to its reply, not to another’s, and to nothing when nothing runs', async () => {
    const [a, b] = [join(ai), join(ai)]
    await b.sendMessage({ text: 'hello' })
    const sending = a.sendMessage({ text: '/slow 60' })
    await a.untilSaid('2 ')
    const [againA, againB] = [
      join(ai, { id: a.id, messages: a.messages.slice(0, 1) }),
      join(ai, { id: b.id, messages: b.messages }),
    ]
    await againB.resumeStream()
    expect([againB.status, againB.error, shown(againB)]).toEqual([unresumed(version), undefined, shown(b)])
    await Promise.all([againA.resumeStream(), sending])
    expect([againA.status, shown(againA)]).toEqual(['ready', shown(a)])
    const fresh = join(ai)
    await fresh.resumeStream()
    expect([fresh.status, fresh.error, fresh.messages]).toEqual([unresumed(version), undefined, []])
  })

  test.concurrent('it is cancelled by its id', async () => {
    const chat = join(ai)
    const sending = chat.sendMessage({ text: '/slow 1000' })
    await chat.untilSaid('2 ')
    const { body } = await app.ask('DELETE', `/v1/chat/echo/${chat.id}/stream`)
    await sending
    expect([body.status, chat.status, chat.error]).toEqual(['cancelled', 'ready', undefined])
    expect(chat.lastMessage?.metadata).toMatchObject({ status: 'cancelled' })
  })
})

describe.each(versions)('ai $version, two chats of threads of one sandbox', ({ ai, version }) => {
  /** Two chats, the first with a reply under way. */
  async function scene(of: (place: { sandboxId: string; threadId: string }) => Partial<ChatOptions>) {
    const sandboxId = await app.sandbox()
    const places = await Promise.all(
      [1, 2].map(async () => {
        const { body } = await app.ask('POST', `/v1/sandboxes/${sandboxId}/threads`, {})
        return { sandboxId, threadId: body.id as string }
      }),
    )
    const joinAt = (n: number) => join(ai, { body: places[n]!, ...of(places[n]!) })
    const [a, b] = [joinAt(0), joinAt(1)]
    await b.sendMessage({ text: 'hello' })
    const sending = a.sendMessage({ text: '/slow 60' })
    await a.untilSaid('2 ')
    const [againA, againB] = [joinAt(0), joinAt(1)]
    againA.messages = a.messages.slice(0, 1)
    againB.messages = b.messages
    await Promise.all([againB.resumeStream(), againA.resumeStream(), sending])
    return { a, b, againA, againB }
  }

  const names: [string, (place: { sandboxId: string; threadId: string }) => Partial<ChatOptions>][] = [
    ['by the thread as the chat’s id', ({ threadId }) => ({ id: threadId })],
    ['by an id of the client’s own', ({ threadId }) => ({ id: `mine-${threadId}` })],
    [
      'by an address that names both',
      ({ sandboxId, threadId }) => ({
        id: sandboxId,
        prepareReconnectToStreamRequest: ({ api, headers }) => ({
          api: `${api.replace(/\/[^/]*\/stream$/, '')}/${sandboxId}/stream?threadId=${threadId}`,
          ...(headers && { headers }),
        }),
      }),
    ],
  ]
  test.concurrent.each(names)('each comes back to its own reply %s', async (_, of) => {
    const { a, b, againA, againB } = await scene(of)
    expect([againB.status, againB.error, shown(againB)]).toEqual([unresumed(version), undefined, shown(b)])
    expect([againA.status, againA.error, shown(againA)]).toEqual(['ready', undefined, shown(a)])
  })
})
