import { describe, expect, test } from 'bun:test'
import { file_path, finalText, playProgram } from '../agent/program.ts'
import { bash, useAgentServer } from '../support/agent-server.ts'
import type { ModelTurn } from '../support/model-server.ts'
import { type Ai, headlessChat, textOf, type UIMessage } from './headless-chat.ts'
import { versions } from './versions.ts'

const { server, model, modelKey } = useAgentServer()

async function scene(ai: Ai) {
  const id = await server.sandbox({ agent: 'coder' })
  const { body: thread } = await server.ask('POST', `/v1/sandboxes/${id}/threads`, {})
  const place = { sandboxId: id, threadId: thread.id as string }
  const join = (messages: UIMessage[] = []) =>
    headlessChat(ai, { api: `${server.url}/v1/chat/coder`, key: server.key, id, messages, body: place })
  const hydrate = async () => (await server.ask('GET', `/v1/sandboxes/${id}/threads/${place.threadId}`)).body
  return { ...place, join, hydrate }
}

/** Fields of a client's own that the server does not store. */
const shown = (message: UIMessage | undefined) =>
  message?.parts.map(({ type, ...part }: any) => [type, part.state, part.input, part.output, part.errorText, part.text])

test('the versions are those that were asked for', () => {
  expect(versions.map(({ version }) => version)).toEqual(['5.0.0', '5.0.35', '6.0.0', '6.0.326', '7.0.0', '7.0.173'])
})

describe.each(versions)('ai $version', ({ ai }) => {
  test('takes a whole task of the agent, and shows what the thread has', async () => {
    const { join, hydrate, ...place } = await scene(ai)
    const chat = join()
    playProgram(model)
    await chat.sendMessage({ text: 'Sum the primes below 100.' })
    expect([chat.status, chat.error, chat.messages.length]).toEqual(['ready', undefined, 2])
    expect(textOf(chat.lastMessage)).toBe(finalText)
    expect(chat.lastMessage?.parts).toMatchObject([
      { type: 'text', text: 'I write it. ', state: 'done' },
      { type: 'tool-Write', state: 'output-available', input: { file_path } },
      { type: 'tool-Bash', state: 'output-available', input: { command: 'python3 primes.py' }, output: '77\n' },
      { type: 'step-start' },
      { type: 'text', text: 'It prints 77. ' },
      { type: 'tool-Read', state: 'output-available', input: { file_path } },
      { type: 'tool-Edit', state: 'output-available', input: { file_path, new_string: 'range(2, 100)' } },
      { type: 'tool-Bash', state: 'output-available', output: '1060\n' },
      { type: 'step-start' },
      { type: 'text', text: 'Now it prints 1060.' },
    ])
    const { messages } = await hydrate()
    // What a stream of this profile does not have, the thread has all the same.
    const isOfFull = ({ type }: { type: string }) => type === 'data-changed-files'
    expect(messages[1].parts.filter(isOfFull)).toMatchObject([{ data: { paths: [file_path] } }])
    const parts = messages[1].parts.filter((part: { type: string }) => !isOfFull(part))
    expect(shown({ ...messages[1], parts })).toEqual(shown(chat.lastMessage))
    const used = { inputTokens: 900, outputTokens: 150, totalTokens: 1050, model: 'anthropic/claude-sonnet-4-6' }
    expect(chat.lastMessage?.metadata).toMatchObject({ ...place, ...used })
    expect(messages[1].metadata).toEqual(chat.lastMessage?.metadata)
  })

  test('takes thoughts, notices, live output, a failed call and one that does not exist', async () => {
    const chat = (await scene(ai)).join()
    const slow = bash('for n in 1 2 3; do echo line $n; done; exit 3')
    model.play(
      { status: 529, headers: { 'retry-after-ms': '10' } },
      { text: 'Well. ', reasoning: 'Let me think about this.' },
      { text: 'I try. ', calls: [slow, { name: 'NoSuchTool' }, { name: 'Bash', raw: '{"comm' }] },
      { text: 'I give up.' },
    )
    await chat.sendMessage({ text: 'Think.' })
    await chat.sendMessage({ text: 'Try.' })
    expect([chat.status, chat.error]).toEqual(['ready', undefined])
    expect(chat.messages.map(textOf)).toEqual(['Think.', 'Well. ', 'Try.', 'I try. I give up.'])
    expect(chat.messages[1]?.parts).toMatchObject([
      { type: 'reasoning', text: 'Let me think about this.', state: 'done' },
      { type: 'text', text: 'Well. ' },
    ])
    expect(chat.lastMessage?.parts.filter(({ type }) => type.startsWith('tool-'))).toMatchObject([
      { type: 'tool-Bash', state: 'output-error', errorText: 'Exit code 3\nline 1\nline 2\nline 3' },
      { type: 'tool-NoSuchTool', state: 'output-error' },
      { type: 'tool-Bash', state: 'output-error' },
    ])
  })

  test('comes back in the middle of a command and has the whole reply', async () => {
    const { join, hydrate } = await scene(ai)
    const first = join()
    model.play(
      { text: 'I wait. ', calls: [bash('until [ -e /tmp/go ]; do sleep 0.01; done; echo gone')] },
      { text: 'Done.' },
    )
    const sending = first.sendMessage({ text: 'Wait.' })
    const isCalled = ({ lastMessage }: typeof first) =>
      lastMessage?.parts.some(part => 'input' in part && part.input) ?? false
    await first.kept.until(() => isCalled(first))
    const second = join((await hydrate()).messages)
    const resuming = second.resumeStream()
    await second.kept.until(() => isCalled(second))
    await server.exec(first.id, 'touch /tmp/go')
    await Promise.all([sending, resuming])
    expect([second.status, second.error, textOf(second.lastMessage)]).toEqual(['ready', undefined, 'I wait. Done.'])
    expect(second.lastMessage?.parts).toEqual(first.lastMessage!.parts)
  })

  const failures: { name: string; turns: ModelTurn[]; said: string }[] = [
    { name: 'refused before a word', turns: [{ status: 401, message: 'wrong key' }], said: '' },
    { name: 'broken off after some', turns: [{ text: 'So far', ending: 'error' }], said: 'So far' },
  ]
  test.each(failures)('has the error of a reply that was $name', async ({ turns, said }) => {
    const chat = (await scene(ai)).join()
    model.play(...turns)
    await chat.sendMessage({ text: 'Go.' })
    expect([chat.status, said ? textOf(chat.lastMessage) : '']).toEqual(['error', said])
    expect(chat.error?.message).not.toBe('')
    expect(chat.error?.message).not.toContain(modelKey)
    model.play({ text: 'Better.' })
    await chat.sendMessage({ text: 'Again.' })
    expect([chat.status, textOf(chat.lastMessage)]).toEqual(['ready', 'Better.'])
  })

  test('is ready with what was said when the run is cancelled', async () => {
    const { join, hydrate } = await scene(ai)
    const chat = join()
    model.play({ text: 'I sleep. ', calls: [bash('sleep 600')] })
    const sending = chat.sendMessage({ text: 'Sleep.' })
    await chat.kept.until(() => chat.lastMessage?.parts.some(part => 'input' in part && part.input) ?? false)
    await server.ask('DELETE', `/v1/chat/coder/${chat.id}/stream`)
    await sending
    expect([chat.status, chat.error, textOf(chat.lastMessage)]).toEqual(['ready', undefined, 'I sleep. '])
    expect(chat.lastMessage?.parts.at(-1)).toMatchObject({ state: 'output-error', errorText: 'cancelled' })
    const { messages } = await hydrate()
    expect(messages[1].metadata).toEqual(chat.lastMessage?.metadata)
  })
})
