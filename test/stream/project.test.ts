import { describe, expect, test } from 'bun:test'
import * as ai5 from 'ai-5'
import * as ai500 from 'ai-5-0-0'
import * as ai6 from 'ai-6'
import * as ai600 from 'ai-6-0-0'
import * as ai7 from 'ai-7'
import * as ai700 from 'ai-7-0-0'
import type { RunMetadata } from '../../src/stream/chunk.ts'
import type { Ending } from '../../src/stream/ending.ts'
import { createMessage } from '../../src/stream/message.ts'
import { projectJson, type StreamProfile } from '../../src/stream/project.ts'
import { replayFrames } from '../../src/stream/replay.ts'
import type { RunEvent } from '../../src/stream/run-event.ts'
import { createWriter } from '../../src/stream/writer.ts'

const metadata: RunMetadata = {
  ...{ sessionId: 'thr_1', totalCostUsd: 0.5, inputTokens: 1, outputTokens: 2, durationMs: 3 },
  ...{ sandboxId: 'sbx_1', threadId: 'thr_1', runId: 'run_1', messageId: 'msg_1', totalTokens: 3, model: 'm' },
}

interface Client {
  DefaultChatTransport: any
  readUIMessageStream: any
  lastAssistantMessageIsCompleteWithToolCalls: any
}
const clients: Record<string, Client> = {
  '5.0.0': ai500,
  '5.0.35': ai5,
  '6.0.0': ai600,
  '6.0.326': ai6,
  '7.0.0': ai700,
  '7.0.173': ai7,
}

/** What a client of the AI SDK makes of a stream. Throws its error. */
async function readAsClient(version: string, chunks: readonly string[]): Promise<any> {
  const { DefaultChatTransport, readUIMessageStream } = clients[version]!
  const body = [...chunks, '[DONE]'].map(data => `data: ${data}\n\n`).join('')
  const headers = { 'content-type': 'text/event-stream' }
  const transport = new DefaultChatTransport({ fetch: async () => new Response(body, { headers }) })
  const request = { chatId: 'c', messages: [], trigger: 'submit-message', abortSignal: undefined }
  let message: any
  let failure: unknown
  const onError = (error: unknown) => {
    failure ??= error
  }
  const stream = await transport.sendMessages(request)
  for await (const state of readUIMessageStream({ stream, onError, terminateOnError: true })) message = state
  if (failure !== undefined) throw failure
  return message
}

const call = (callId: string, name = 'Bash'): RunEvent => ({
  type: 'tool-call',
  callId,
  name,
  input: { command: 'ls' },
})
const say = (delta: string): RunEvent => ({ type: 'text', id: 't', delta })

/** Everything that a turn can have. */
const everything: RunEvent[] = [
  { type: 'reasoning', id: 'r', delta: 'hm' },
  say('Let me see.'),
  call('a'),
  { type: 'tool-progress', callId: 'a', data: { text: 'working' } },
  { type: 'tool-result', callId: 'a', output: 'x' },
  { type: 'file', mediaType: 'image/png', url: 'data:image/png;base64,AA==' },
  { type: 'source', id: 's', url: 'https://example.com/', title: 'Example' },
  { type: 'data', name: 'todos', id: 'todos', data: { todos: [] } },
  { type: 'steering', id: 'msg_9', parts: [{ type: 'text', text: 'And that.' }] },
  { type: 'notice', level: 'warn', code: 'model_retry', text: 'again' },
  say('Now this.'),
  { type: 'data', name: 'todos', id: 'todos', data: { todos: [1] } },
  call('b'),
  { type: 'approval-request', callId: 'b', approvalId: 'apr_1', reason: 'It changes something.' },
  call('p', 'pickColor'),
]

/** What follows in the run that goes on. */
const answered: RunEvent[] = [
  { type: 'approval-response', callId: 'b', approvalId: 'apr_1', approved: true },
  { type: 'tool-result', callId: 'p', output: 'red' },
  { type: 'tool-begin', callId: 'b' },
  { type: 'tool-result', callId: 'b', output: 'y' },
  say('Done.'),
]

function write(events: readonly RunEvent[], ending: Ending, before: any[] = []) {
  const writer = createWriter({ messageId: 'msg_1', before, clientTools: ['pickColor'] })
  const message = createMessage(before)
  const chunks = [...writer.start(), ...events.flatMap(event => writer.write(event)), ...writer.close(ending, metadata)]
  for (const chunk of chunks) message.apply(chunk)
  const show = (profile: StreamProfile) => chunks.flatMap(chunk => projectJson(JSON.stringify(chunk), profile) ?? [])
  return { show, parts: message.parts() }
}

const endings: Ending[] = [
  { status: 'completed' },
  { status: 'cancelled' },
  { status: 'waiting' },
  { status: 'waiting', lostText: 'stopped' },
  { status: 'failed', errorText: 'failed' },
  { status: 'interrupted', errorText: 'stopped' },
]

describe('a client reads every chunk of its profile', () => {
  const cases: [string, StreamProfile][] = [
    ...Object.keys(clients).map((version): [string, StreamProfile] => [version, 'contract']),
    ...['6.0.326', '7.0.173'].map((version): [string, StreamProfile] => [version, 'full']),
    ['7.0.173', 'ai-7'],
  ]
  for (const [version, profile] of cases)
    for (const ending of endings)
      test(`${version}, ${profile}, ${ending.status}${'lostText' in ending ? ' after a stop' : ''}`, async () => {
        const first = write(everything, ending)
        const reading = readAsClient(version, first.show(profile))
        if ('errorText' in ending) await expect(reading).rejects.toThrow(ending.errorText)
        else expect((await reading).parts.length).toBeGreaterThan(0)
      })
})

describe('the message of a client is the one that is stored', () => {
  for (const [version, profile] of [
    ['6.0.326', 'full'],
    ['7.0.173', 'full'],
    ['7.0.173', 'ai-7'],
  ] as const)
    for (const status of ['completed', 'waiting'] as const)
      test(`${version}, ${profile}, ${status}`, async () => {
        const first = write(
          everything.filter(({ type }) => type !== 'steering'),
          { status },
        )
        const { id, parts, metadata: told } = await readAsClient(version, first.show(profile))
        expect([id, told]).toEqual(['msg_1', metadata])
        expect(parts.map(plain)).toEqual(first.parts.map(plain))
      })

  /** Without what only a client keeps. */
  function plain(part: any) {
    const { rawInput: _, id, approval, ...rest } = JSON.parse(JSON.stringify(part))
    return {
      ...rest,
      ...(id && rest.type !== 'reasoning' && { id }),
      ...(approval && { approval: { id: approval.id } }),
    }
  }
})

test('a reply that goes on has all its parts, with what was decided', () => {
  const first = write(everything, { status: 'waiting' })
  const open = first.parts.slice(-2)
  expect(open.map(({ state }) => state)).toEqual(['approval-requested', 'input-available'])
  expect(open[1]).toEqual({
    ...{ type: 'tool-pickColor', toolCallId: 'p', state: 'input-available', input: { command: 'ls' } },
  })
  const second = write(answered, { status: 'completed' }, first.parts)
  expect(second.parts.slice(0, first.parts.length - 2)).toEqual(first.parts.slice(0, -2))
  expect(second.parts.slice(first.parts.length - 2)).toMatchObject([
    { state: 'output-available', output: 'y', approval: { id: 'apr_1', approved: true } },
    { state: 'output-available', output: 'red' },
    { type: 'step-start' },
    { type: 'text', text: 'Done.' },
  ])
  expect(second.show('contract').map(chunk => JSON.parse(chunk).type)).toEqual([
    ...[
      'start',
      'tool-output-available',
      'tool-output-available',
      'start-step',
      'text-start',
      'text-delta',
      'text-end',
    ],
    ...['message-metadata', 'finish'],
  ])
})

describe('a client that resumes while a reply goes on has the whole message', () => {
  for (const [version, profile] of [
    ['5.0.35', 'contract'],
    ['6.0.326', 'contract'],
    ['7.0.173', 'contract'],
    ['6.0.326', 'full'],
    ['7.0.173', 'full'],
    ['7.0.173', 'ai-7'],
  ] as const)
    test(`${version}, ${profile}`, async () => {
      const first = write(everything, { status: 'waiting' })
      const second = write(answered, { status: 'completed' }, first.parts)
      const preface = new TextDecoder().decode(replayFrames('msg_1', first.parts, profile))
      const before = preface.split('\n\n').flatMap(frame => (frame === '' ? [] : [frame.slice('data: '.length)]))
      const message = await readAsClient(version, [...before, ...second.show(profile).slice(1)])
      expect(message.id).toBe('msg_1')
      const shown = second.parts.filter(
        ({ type }) => profile !== 'contract' || !/^(file|source-url|data-|steering)/.test(type),
      )
      expect(message.parts.map(({ type, text }: any) => [type, text])).toEqual(
        shown.map(({ type, text }) => [type, text]),
      )
    })
})

describe.each(Object.keys(clients))('ai %s', version => {
  test.each([
    { state: 'output-available', output: 'red' },
    { state: 'output-error', errorText: 'no' },
  ])(
    'a resumed reply shows a call that its client has answered ($state), and does not ask for it again',
    async answer => {
      const part = { type: 'tool-pickColor', toolCallId: 'p', input: { hue: 'warm' }, ...answer }
      const preface = new TextDecoder().decode(replayFrames('msg_1', [part], 'contract'))
      const chunks = preface.split('\n\n').flatMap(frame => (frame === '' ? [] : [frame.slice('data: '.length)]))
      // The chunk at which every version calls `onToolCall`.
      expect(chunks.map(chunk => JSON.parse(chunk).type)).not.toContain('tool-input-available')
      const message = await readAsClient(version, chunks)
      expect(message.parts).toMatchObject([part])
    },
  )
})

describe.each(Object.entries(clients))('ai %s, that posts when the calls of a reply are complete', (_, client) => {
  const isComplete = (parts: readonly any[]) =>
    client.lastAssistantMessageIsCompleteWithToolCalls({ messages: [{ id: 'm', role: 'assistant', parts }] })
  const outcomes: [string, RunEvent[]][] = [
    ['has its output', [{ type: 'tool-result', callId: 'p', output: 'red' }]],
    ['has failed', [{ type: 'tool-result', callId: 'p', output: undefined, error: 'no' }]],
    [
      'is beside one of the server that failed',
      [
        { type: 'tool-result', callId: 'p', output: 'red' },
        { type: 'tool-result', callId: 'b', output: undefined, error: 'Exit code 1' },
      ],
    ],
  ]
  test.each(outcomes)('posts no reply that has gone on when its call %s', (_, events) => {
    const calls = events.length > 1 ? [call('b'), call('p', 'pickColor')] : [call('p', 'pickColor')]
    const { parts } = write(calls, { status: 'waiting' })
    expect(isComplete(parts)).toBe(false)
    for (const last of [[say('Nice.')], []]) {
      expect(isComplete(write([...events, ...last], { status: 'completed' }, parts).parts)).toBe(false)
    }
  })
})

test('a denied call of a reply that goes on is denied in every profile', () => {
  const first = write(everything, { status: 'waiting' })
  const denial: RunEvent = {
    type: 'approval-response',
    callId: 'b',
    approvalId: 'apr_1',
    approved: false,
    reason: 'no',
  }
  const second = write([denial, say('Well.')], { status: 'completed' }, first.parts)
  expect(second.parts.find(({ toolCallId }) => toolCallId === 'b')).toMatchObject({
    state: 'output-denied',
    approval: { id: 'apr_1', approved: false, reason: 'no' },
  })
  const typesIn = (profile: StreamProfile) => second.show(profile).map(chunk => JSON.parse(chunk).type)
  expect(typesIn('contract').slice(0, 2)).toEqual(['start', 'tool-output-error'])
  expect(typesIn('full').slice(0, 2)).toEqual(['start', 'tool-output-denied'])
  expect(typesIn('ai-7').slice(0, 3)).toEqual(['start', 'tool-approval-response', 'tool-output-denied'])
})

test('how a stream ends is told by the profiles that have a word for it', () => {
  const finish = (profile: StreamProfile, ending: Ending) =>
    JSON.parse(
      write([say('x')], ending)
        .show(profile)
        .at(-1)!,
    )
  const reasons = (profile: StreamProfile) =>
    endings.filter(ending => ending.status !== 'waiting').map(ending => finish(profile, ending).finishReason)
  expect(reasons('contract')).toEqual([undefined, undefined, undefined, undefined])
  expect(reasons('full')).toEqual(['stop', 'other', 'error', 'error'])
  expect(reasons('ai-7')).toEqual(['stop', 'other', 'error', 'interrupted'])
})
