import { expect, test } from 'bun:test'
import type { Engine } from '../../src/plugin-api/index.ts'
import { useApp } from '../support/app.ts'
import { chat, say, threadOf } from '../support/chat.ts'
import { readChunks } from '../support/sse.ts'

/** Names its calls as some providers do: anew with each answer. */
const forgetful: Engine = {
  name: 'forgetful',
  async *run() {
    for (const input of ['first', 'second']) {
      yield { type: 'tool-input', callId: 'call_0', name: 'Look', delta: '{' }
      yield { type: 'tool-call', callId: 'call_0', name: 'Look', input: { input } }
      yield { type: 'tool-progress', callId: 'call_0', data: { input } }
      yield { type: 'tool-result', callId: 'call_0', output: input }
    }
    return { status: 'completed' }
  },
}

const app = useApp([], {}, () => [{ name: 'forgetful', engine: () => forgetful }])

const callsIn = (messages: any[]) =>
  messages.flatMap(({ parts }) => parts.filter(({ toolCallId }: any) => toolCallId !== undefined))

test('tool calls of two replies in a thread have ids of their own', async () => {
  const first = await chat(app, '$ echo one')
  const second = await chat(app, '$ echo two', first)
  const calls = callsIn((await threadOf(app, first)).messages)
  expect(new Set(calls.map(({ toolCallId }) => toolCallId)).size).toBe(2)
  expect(calls.map(({ output }) => output)).toEqual(['one\n', 'two\n'])
  const shown = second.chunks.filter(({ toolCallId }: any) => toolCallId !== undefined)
  expect(new Set(shown.map(({ toolCallId }: any) => toolCallId))).toEqual(new Set([calls[1].toolCallId]))
})

test('an engine that gives two calls of a reply one id has them told apart', async () => {
  app.agent('forgetful', {}, { engine: 'forgetful' })
  const ask = async (ids: object) => {
    const response = await app.request('POST', '/v1/chat/forgetful', { body: { messages: [say('Go.')], ...ids } })
    const header = (name: string) => response.headers.get(name) ?? ''
    const chunks = await readChunks(response)
    return { chunks, sandboxId: header('x-sandbox-id'), threadId: header('x-thread-id') }
  }
  const { chunks, ...ids } = await ask({})
  await ask(ids)
  const calls = callsIn((await threadOf(app, ids)).messages)
  expect(calls.map(({ toolCallId }) => toolCallId)).toEqual(['call_0', 'call_0-2', 'call_0-3', 'call_0-4'])
  expect(calls.map(({ output }) => output)).toEqual(['first', 'second', 'first', 'second'])
  const outputs = chunks.filter(({ type }: any) => type === 'tool-output-available')
  expect(outputs.map(({ toolCallId, output }: any) => [toolCallId, output])).toEqual([
    ['call_0', 'first'],
    ['call_0-2', 'second'],
  ])
})
