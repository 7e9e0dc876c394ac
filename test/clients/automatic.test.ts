import { describe, expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'
import { cancel } from '../support/chat.ts'
import { type Ai, headlessChat, textOf } from './headless-chat.ts'
import { versions } from './versions.ts'

const app = useApp()

/** More posts than this are a loop: it is broken off, so that the test ends. */
const LOOP = 5

/** A chat that posts by itself when each call of a reply has its output, as those with tools of their own do. */
async function scene(ai: Ai) {
  const sandboxId = await app.sandbox()
  const { body: thread } = await app.ask('POST', `/v1/sandboxes/${sandboxId}/threads`, {})
  const threadId: string = thread.id
  const chat = headlessChat(ai, {
    api: `${app.url}/v1/chat/echo`,
    key: app.key,
    id: sandboxId,
    body: { sandboxId, threadId },
    sendAutomaticallyWhen: state =>
      chat.sent.length < LOOP && ai.lastAssistantMessageIsCompleteWithToolCalls({ messages: state.messages }),
  })
  const runs = () =>
    app.beside(db =>
      db.query<{ status: string }, [string]>('select status from runs where thread_id = ?').all(threadId),
    )
  const stored = async () => (await app.ask('GET', `/v1/sandboxes/${sandboxId}/threads/${threadId}`)).body
  return { chat, runs, stored, sandboxId }
}

describe.each(versions)('ai $version that sends automatically', ({ ai }) => {
  const turns: [string, string][] = [
    ['uses a tool and then speaks', 'look\n$ uname\nso it is'],
    ['ends with a tool', 'look\n$ uname'],
    ['uses two tools, one after the other', '$ echo 1\n$ echo 2\nboth'],
    ['speaks between tools and ends with one', '$ echo 1\nand\n$ echo 2'],
    ['has a tool that fails', '$ exit 3\nno'],
    ['fails after a tool', '$ echo 1\n/fail'],
  ]
  test.each(turns)('a turn that %s is posted once, and is one run', async (_, text) => {
    const { chat, runs, stored } = await scene(ai)
    await chat.sendMessage({ text })
    expect([chat.sent.length, runs().length]).toEqual([1, 1])
    const calls = chat.lastMessage?.parts.filter(({ type }) => type.startsWith('tool-')) ?? []
    expect(calls).toMatchObject(Array(calls.length).fill({ providerExecuted: true }))
    // A client that takes its messages from the thread judges them alike.
    const { messages } = await stored()
    expect(ai.lastAssistantMessageIsCompleteWithToolCalls({ messages })).toBe(false)
    expect(messages[1].parts.map(({ type }: any) => type)).toEqual(chat.lastMessage!.parts.map(({ type }) => type))
  })

  test('a turn that is cancelled in a tool is posted once', async () => {
    const { chat, runs, sandboxId } = await scene(ai)
    const sending = chat.sendMessage({ text: '$ echo 1\n$ sleep 600' })
    await chat.kept.until(() => chat.lastMessage?.parts.filter(part => 'input' in part && part.input).length === 2)
    await cancel(app, sandboxId)
    await sending
    expect([chat.sent.length, chat.status, runs()]).toEqual([1, 'ready', [{ status: 'cancelled' }]])
  })

  test('a message after such a turn is answered', async () => {
    const { chat, runs } = await scene(ai)
    await chat.sendMessage({ text: 'first\n$ echo 1' })
    await chat.sendMessage({ text: 'second' })
    expect([chat.sent.length, runs().length, textOf(chat.lastMessage)]).toEqual([2, 2, 'second'])
  })

  test('a post that ends in a reply runs nothing: 409 nothing_to_continue', async () => {
    const { chat, runs } = await scene(ai)
    await chat.sendMessage({ text: 'first' })
    await chat.sendMessage()
    expect([chat.sent.length, runs().length, chat.status]).toEqual([2, 1, 'error'])
    expect(chat.error?.message).toContain('nothing_to_continue')
  })
})
