import { describe, expect, test } from 'bun:test'
import * as ai5 from 'ai-5'
import { version as version5 } from 'ai-5/package.json'
import * as ai6 from 'ai-6'
import { version as version6 } from 'ai-6/package.json'
import * as ai7 from 'ai-7'
import { version as version7 } from 'ai-7/package.json'
import { useServer } from '../support/server.ts'
import { type Ai, headlessChat, textOf, type UIMessage } from './headless-chat.ts'

const server = useServer()

const versions = [
  { version: version5, ai: ai5 as Ai },
  { version: version6, ai: ai6 as unknown as Ai },
  { version: version7, ai: ai7 as unknown as Ai },
]

/** A new sandbox and thread, and a chat on them. */
async function scene(ai: Ai) {
  const id = await server.sandbox()
  const { body: thread } = await server.ask('POST', `/v1/sandboxes/${id}/threads`, {})
  const place = { sandboxId: id, threadId: thread.id as string }
  const join = (messages: UIMessage[] = []) =>
    headlessChat(ai, { api: `${server.url}/v1/chat/echo`, key: server.key, id, messages, body: place })
  const cancel = async () => (await server.ask('DELETE', `/v1/chat/echo/${id}/stream`)).body
  const hydrate = async () => (await server.ask('GET', `/v1/sandboxes/${id}/threads/${place.threadId}`)).body
  return { ...place, join, cancel, hydrate }
}

const metadataOf = (sandboxId: string, threadId: string, inputTokens: number, outputTokens: number) => ({
  sessionId: threadId,
  totalCostUsd: 0,
  inputTokens,
  outputTokens,
  durationMs: expect.any(Number),
  sandboxId,
  threadId,
  runId: expect.stringMatching(/^run_/),
  messageId: expect.stringMatching(/^msg_/),
  totalTokens: inputTokens + outputTokens,
  model: 'echo',
})

/** The first N of "1 2 3 ". */
const countTo = (text: string) => text.split(' ').slice(0, -1).map(Number)
const numbers = (count: number) => Array.from({ length: count }, (_, index) => index + 1)

test('the versions are those that were asked for', () => {
  expect(versions.map(({ version }) => version)).toEqual(['5.0.35', '6.0.326', '7.0.173'])
})

describe.each(versions)('ai $version', ({ ai }) => {
  test.concurrent('sends a message and gets the reply with its metadata', async () => {
    const { join, hydrate, sandboxId, threadId } = await scene(ai)
    const chat = join()
    await chat.sendMessage({ text: 'how do you do' })
    expect([chat.status, chat.error, chat.messages.length]).toEqual(['ready', undefined, 2])
    expect(chat.lastMessage?.role).toBe('assistant')
    expect(chat.lastMessage?.parts).toEqual([{ type: 'text', text: 'how do you do', state: 'done' }])
    expect(chat.lastMessage?.metadata).toEqual(metadataOf(sandboxId, threadId, 4, 4))
    await chat.sendMessage({ text: 'again' })
    expect(chat.messages.map(textOf)).toEqual(['how do you do', 'how do you do', 'again', 'again'])
    expect((await hydrate()).messages.map(textOf)).toEqual(chat.messages.map(textOf))
  })

  test.concurrent('shows a tool call with its input and output', async () => {
    const { join } = await scene(ai)
    const chat = join()
    await chat.sendMessage({ text: 'what is it?\n$ uname\nso there' })
    expect(chat.status).toBe('ready')
    const call = { type: 'tool-Bash', toolCallId: 'call-1', state: 'output-available', output: 'Linux\n' }
    expect(chat.lastMessage?.parts).toMatchObject([
      { type: 'text', text: 'what is it?\n' },
      { ...call, input: { command: 'uname' } },
      { type: 'step-start' },
      { type: 'text', text: 'so there' },
    ])
  })

  test.concurrent('a second client, come in mid-run, has the whole reply', async () => {
    const { join, hydrate } = await scene(ai)
    const first = join()
    const sending = first.sendMessage({ text: '/slow 80' })
    await first.untilSaid('5 ')
    const thread = await hydrate()
    expect([thread.status, thread.messages.map(textOf)]).toEqual(['streaming', ['/slow 80']])
    const second = join(thread.messages)
    const resuming = second.resumeStream()
    await second.untilSaid('5 ')
    expect(first.status).toBe('streaming')
    await Promise.all([sending, resuming])
    for (const chat of [first, second]) {
      expect([chat.status, chat.error, chat.messages.length]).toEqual(['ready', undefined, 2])
      expect(countTo(textOf(chat.lastMessage))).toEqual(numbers(80))
    }
    expect(second.lastMessage?.parts).toEqual(first.lastMessage!.parts)
    expect(second.lastMessage?.metadata).toEqual(first.lastMessage!.metadata as object)
  })

  test.concurrent('a client whose own request was stopped comes back to the same run', async () => {
    const { join } = await scene(ai)
    const chat = join()
    const sending = chat.sendMessage({ text: '/slow 60' })
    await chat.untilSaid('3 ')
    await Promise.all([chat.stop(), sending])
    const returning = join(chat.messages.slice(0, 1))
    await returning.resumeStream()
    expect(countTo(textOf(returning.lastMessage))).toEqual(numbers(60))
    expect(returning.status).toBe('ready')
  })

  test.concurrent('with nothing to resume, a client stays as it is', async () => {
    const { join, hydrate } = await scene(ai)
    await join().sendMessage({ text: 'hello' })
    const second = join((await hydrate()).messages)
    await second.resumeStream()
    expect([second.status, second.error, second.messages.map(textOf)]).toEqual(['ready', undefined, ['hello', 'hello']])
  })

  test.concurrent('cancelled in mid-run, every client is ready with what was said', async () => {
    const { join, cancel, hydrate, sandboxId, threadId } = await scene(ai)
    const first = join()
    const sending = first.sendMessage({ text: '/slow 4000' })
    await first.untilSaid('3 ')
    const second = join((await hydrate()).messages)
    const resuming = second.resumeStream()
    await second.untilSaid('3 ')
    const receipt = await cancel()
    expect([receipt.status, receipt.runs.length]).toEqual(['cancelled', 1])
    await Promise.all([sending, resuming])
    const thread = await hydrate()
    expect(thread.status).toBe('cancelled')
    const said = textOf(thread.messages[1])
    expect(countTo(said)).toEqual(numbers(countTo(said).length))
    for (const chat of [first, second]) {
      expect([chat.status, chat.error, textOf(chat.lastMessage)]).toEqual(['ready', undefined, said])
      expect(chat.lastMessage?.metadata).toEqual({
        ...metadataOf(sandboxId, threadId, 2, countTo(said).length),
        status: 'cancelled',
      })
    }
    await first.sendMessage({ text: 'go on' })
    expect([first.status, textOf(first.lastMessage)]).toEqual(['ready', 'go on'])
  })

  test.concurrent('cancelled in a tool call, the call is shown as cancelled', async () => {
    const { join, cancel } = await scene(ai)
    const chat = join()
    const sending = chat.sendMessage({ text: '$ sleep 600' })
    await chat.kept.until(() => chat.lastMessage?.parts.some(part => 'input' in part && part.input) ?? false)
    await cancel()
    await sending
    expect(chat.status).toBe('ready')
    const call = { type: 'tool-Bash', state: 'output-error', errorText: 'cancelled', input: { command: 'sleep 600' } }
    expect(chat.lastMessage?.parts).toMatchObject([call])
  })

  test.concurrent('a reply that fails leaves the client with the error', async () => {
    const { join, sandboxId, threadId } = await scene(ai)
    const chat = join()
    await chat.sendMessage({ text: 'first this\n/fail' })
    expect([chat.status, chat.error?.message]).toEqual(['error', 'The echo engine fails because it was asked to.'])
    expect(textOf(chat.lastMessage)).toBe('first this\n')
    expect(chat.lastMessage?.metadata).toEqual({ ...metadataOf(sandboxId, threadId, 3, 2), status: 'failed' })
  })

  test.concurrent('reads a reconnected stream without a chat around it', async () => {
    const { join, sandboxId } = await scene(ai)
    const chat = join()
    const sending = chat.sendMessage({ text: '/slow 60' })
    await chat.untilSaid('2 ')
    const transport = new ai.DefaultChatTransport<UIMessage>({
      api: `${server.url}/v1/chat/echo`,
      headers: { authorization: `Bearer ${server.key}` },
    })
    const stream = await transport.reconnectToStream({ chatId: sandboxId })
    const messages = await Array.fromAsync(ai.readUIMessageStream<UIMessage>({ stream: stream! }))
    expect(countTo(textOf(messages.at(-1)))).toEqual(numbers(60))
    await sending
    expect(await transport.reconnectToStream({ chatId: sandboxId })).toBeNull()
    expect(await transport.reconnectToStream({ chatId: 'sandbox-echo' })).toBeNull()
  })
})
