import { describe, expect, test } from 'bun:test'
import type { Chunk, RunMetadata } from '../../src/stream/chunk.ts'
import { parseChunk } from '../../src/stream/chunk.ts'
import type { Ending } from '../../src/stream/ending.ts'
import { createMessage, textOf } from '../../src/stream/message.ts'
import { projectJson } from '../../src/stream/project.ts'
import { rebuild } from '../../src/stream/rebuild.ts'
import type { RunEvent } from '../../src/stream/run-event.ts'
import { createWriter } from '../../src/stream/writer.ts'

const metadata: RunMetadata = {
  sessionId: 'thr_1',
  totalCostUsd: 0.5,
  inputTokens: 1,
  outputTokens: 2,
  durationMs: 3,
  sandboxId: 'sbx_1',
  threadId: 'thr_1',
  runId: 'run_1',
  totalTokens: 3,
  model: 'm',
}

const text = (id: string, delta: string): RunEvent => ({ type: 'text', id, delta })
const reasoning = (id: string, delta: string): RunEvent => ({ type: 'reasoning', id, delta })
const call = (callId: string, name = 'Bash', input: unknown = { command: 'ls' }): RunEvent => ({
  type: 'tool-call',
  callId,
  name,
  input,
})
const input = (callId: string, delta: string): RunEvent => ({ type: 'tool-input', callId, name: 'Bash', delta })
const result = (callId: string, output: unknown, error?: string): RunEvent => ({
  type: 'tool-result',
  callId,
  output,
  ...(error !== undefined && { error }),
})

const progress = (callId: string, text: string): RunEvent => ({ type: 'tool-progress', callId, data: { text } })

function write(events: RunEvent[], ending: Ending = { status: 'completed' }): Chunk[] {
  const writer = createWriter()
  return [...writer.start(), ...events.flatMap(event => writer.write(event)), ...writer.close(ending, metadata)]
}

/** One word a chunk: its type, its id, and what it carries. Of each tool's chunks the server says that it runs it. */
const brief = (chunk: Chunk): string =>
  Object.entries('toolCallId' in chunk ? withoutMark(chunk) : chunk)
    .map(([, value]) => (typeof value === 'string' ? value : JSON.stringify(value)))
    .join(' ')

function withoutMark({
  providerExecuted,
  ...chunk
}: Extract<Chunk, { toolCallId: string }> & { providerExecuted?: true }) {
  expect(providerExecuted).toBe(chunk.type === 'tool-input-delta' ? undefined : true)
  return chunk
}

const body = (chunks: Chunk[]) => chunks.slice(1, -2).map(brief)

describe('events become chunks', () => {
  const scenarios: [string, RunEvent[], string[]][] = [
    ['nothing said, no part', [], []],
    [
      'a part opens at its first delta that is not empty',
      [text('a', ''), text('a', 'Hi'), text('a', ''), text('a', '!'), { type: 'part-end', id: 'a' }],
      ['text-start text-1', 'text-delta text-1 Hi', 'text-delta text-1 !', 'text-end text-1'],
    ],
    ['an empty part is never opened', [text('a', ''), { type: 'part-end', id: 'a' }], []],
    [
      'an id used again is another part',
      [text('0', 'a'), { type: 'part-end', id: '0' }, text('0', 'b')],
      [
        'text-start text-1',
        'text-delta text-1 a',
        'text-end text-1',
        'text-start text-2',
        'text-delta text-2 b',
        'text-end text-2',
      ],
    ],
    [
      'another kind of part closes what is open',
      [reasoning('0', 'hm'), text('0', 'so')],
      [
        'reasoning-start reasoning-1',
        'reasoning-delta reasoning-1 hm',
        'reasoning-end reasoning-1',
        'text-start text-2',
        'text-delta text-2 so',
        'text-end text-2',
      ],
    ],
    [
      'parts of one kind may be open side by side',
      [text('a', '1'), text('b', '2'), text('a', '3')],
      [
        'text-start text-1',
        'text-delta text-1 1',
        'text-start text-2',
        'text-delta text-2 2',
        'text-delta text-1 3',
        'text-end text-1',
        'text-end text-2',
      ],
    ],
    [
      'a tool with streamed input closes the text before it',
      [text('a', 'x'), input('c', ''), input('c', '{"c'), input('c', '"}'), call('c'), result('c', 'out')],
      [
        'text-start text-1',
        'text-delta text-1 x',
        'text-end text-1',
        'tool-input-start c Bash',
        'tool-input-delta c {"c',
        'tool-input-delta c "}',
        'tool-input-available c Bash {"command":"ls"}',
        'tool-output-available c out',
        'start-step',
      ],
    ],
    [
      'a call without streamed input gets its start',
      [call('c'), result('c', null, 'boom')],
      ['tool-input-start c Bash', 'tool-input-available c Bash {"command":"ls"}', 'tool-output-error c boom'],
    ],
    [
      'a call is named as it began',
      [input('c', ''), call('c', 'Other', 1), result('c', 1)],
      ['tool-input-start c Bash', 'tool-input-available c Bash 1', 'tool-output-available c 1', 'start-step'],
    ],
    [
      'what makes no sense is left out',
      [
        result('none', 1),
        { type: 'part-end', id: 'none' },
        call('c'),
        call('c'),
        input('c', 'late'),
        result('c', 1),
        result('c', 2),
        call('c'),
        input('c', 'later'),
      ],
      [
        'tool-input-start c Bash',
        'tool-input-available c Bash {"command":"ls"}',
        'tool-output-available c 1',
        'start-step',
      ],
    ],
    [
      'what follows calls that all have their output is a step of its own',
      [call('c'), call('d'), result('c', 1), text('a', 'x'), result('d', 2), text('a', 'y')],
      [
        'tool-input-start c Bash',
        'tool-input-available c Bash {"command":"ls"}',
        'tool-input-start d Bash',
        'tool-input-available d Bash {"command":"ls"}',
        'tool-output-available c 1',
        'text-start text-1',
        'text-delta text-1 x',
        'tool-output-available d 2',
        'text-delta text-1 y',
        'text-end text-1',
        'start-step',
      ],
    ],
    [
      'session and usage say nothing',
      [
        { type: 'session', engineSessionId: 's' },
        { type: 'usage', inputTokens: 1, outputTokens: 1 },
      ],
      [],
    ],
    [
      'a notice is seen and not kept',
      [{ type: 'notice', level: 'warn', code: 'retry', text: 'Waits.' }],
      ['data-notice {"level":"warn","code":"retry","text":"Waits."} true'],
    ],
    [
      'progress is seen while its tool runs',
      [progress('c', 'early'), call('c'), progress('c', 'now'), result('c', 1), progress('c', 'late')],
      [
        'tool-input-start c Bash',
        'tool-input-available c Bash {"command":"ls"}',
        'data-tool-progress {"text":"now","toolCallId":"c"} true',
        'tool-output-available c 1',
        'start-step',
      ],
    ],
    [
      'a value that JSON leaves out is null',
      [{ type: 'tool-call', callId: 'c', name: 'T', input: undefined }, result('c', undefined)],
      ['tool-input-start c T', 'tool-input-available c T null', 'tool-output-available c null', 'start-step'],
    ],
    [
      'a value that JSON cannot say is said in words',
      [call('c', 'T', 1n), result('c', 2n)],
      ['tool-input-start c T', 'tool-input-available c T 1', 'tool-output-available c 2', 'start-step'],
    ],
  ]
  for (const [name, events, expected] of scenarios) test(name, () => expect(body(write(events))).toEqual(expected))
})

describe('endings', () => {
  const open = [text('a', 'x'), call('c'), input('d', '{'), text('b', 'y')]
  const meta = 'message-metadata'
  const scenarios: [string, Ending, string, string[]][] = [
    ['completed', { status: 'completed' }, 'no result', [meta, 'finish']],
    ['cancelled', { status: 'cancelled' }, 'cancelled', [meta, 'abort', 'finish']],
    ['failed', { status: 'failed', errorText: 'no model' }, 'no model', [meta, 'error', 'finish']],
    ['interrupted', { status: 'interrupted', errorText: 'restart' }, 'restart', [meta, 'error', 'finish']],
  ]
  for (const [name, ending, lost, last] of scenarios)
    test(name, () => {
      const chunks = write(open, ending)
      const closing = chunks.slice(chunks.findLastIndex(chunk => chunk.type === 'text-delta') + 1)
      expect(closing.slice(0, 3)).toEqual([
        { type: 'text-end', id: 'text-2' },
        { type: 'tool-output-error', toolCallId: 'c', errorText: lost, providerExecuted: true },
        { type: 'tool-output-error', toolCallId: 'd', errorText: lost, providerExecuted: true },
      ])
      expect(closing.slice(3).map(chunk => chunk.type)).toEqual(last as Chunk['type'][])
    })

  test('a normal reply, to the byte', () => {
    expect(write([text('t', 'Hello')]).map(chunk => projectJson(JSON.stringify(chunk), 'contract'))).toEqual([
      '{"type":"start"}',
      '{"type":"text-start","id":"text-1"}',
      '{"type":"text-delta","id":"text-1","delta":"Hello"}',
      '{"type":"text-end","id":"text-1"}',
      '{"type":"message-metadata","messageMetadata":{"sessionId":"thr_1","totalCostUsd":0.5,"inputTokens":1,"outputTokens":2,"durationMs":3,"sandboxId":"sbx_1","threadId":"thr_1","runId":"run_1","totalTokens":3,"model":"m"}}',
      '{"type":"finish"}',
    ])
  })
})

/** Throws where a client would. */
function checkAsClient(chunks: Chunk[]): void {
  const open = new Map<string, string>()
  const used = new Set<string>()
  const tools = new Map<string, string>()
  for (const chunk of chunks) {
    expect(parseChunk(JSON.stringify(chunk))).toEqual(chunk)
    if (chunk.type === 'text-start' || chunk.type === 'reasoning-start') {
      expect(used.has(chunk.id)).toBe(false)
      used.add(chunk.id)
      open.set(chunk.id, chunk.type.slice(0, -6))
    } else if ('id' in chunk && /^(text|reasoning)-(delta|end)$/.test(chunk.type)) {
      expect(open.get(chunk.id)).toBe(chunk.type.split('-')[0]!)
      if (chunk.type.endsWith('-end')) open.delete(chunk.id)
    } else if (chunk.type === 'tool-input-start') {
      expect(tools.has(chunk.toolCallId)).toBe(false)
      tools.set(chunk.toolCallId, 'begun')
    } else if ('toolCallId' in chunk) {
      expect(chunk.type.startsWith('tool-input') ? ['begun'] : ['begun', 'called']).toContain(
        tools.get(chunk.toolCallId)!,
      )
      if (chunk.type === 'tool-input-available') tools.set(chunk.toolCallId, 'called')
      if (chunk.type.startsWith('tool-output')) tools.delete(chunk.toolCallId)
    }
  }
  expect([...open, ...tools]).toEqual([])
}

/** A small repeatable source of chance. */
const chance = (seed: number) => () => {
  seed = (seed * 1103515245 + 12345) % 2147483648
  return seed / 2147483648
}

function randomEvents(random: () => number): RunEvent[] {
  const id = () => `${Math.floor(random() * 3)}`
  const makers: (() => RunEvent)[] = [
    () => text(id(), random() < 0.2 ? '' : 't'),
    () => reasoning(id(), 'r'),
    () => ({ type: 'part-end', id: id() }),
  ]
  let calls = 0
  const callId = () => `c${Math.max(0, calls - Math.floor(random() * 3))}`
  makers.push(
    () => input(callId(), 'i'),
    () => {
      calls += 1
      return call(callId())
    },
    () => result(callId(), 'o', random() < 0.3 ? 'e' : undefined),
  )
  return Array.from({ length: 60 }, () => makers[Math.floor(random() * makers.length)]!())
}

test('whatever an engine does, a client can read the stream', () => {
  for (let seed = 1; seed <= 200; seed++) checkAsClient(write(randomEvents(chance(seed))))
})

test('a log cut anywhere closes as the live stream would have, with the same message', () => {
  const ending: Ending = { status: 'interrupted', errorText: 'stopped' }
  for (let seed = 1; seed <= 40; seed++) {
    const live = createWriter()
    const liveMessage = createMessage()
    const log = live.start()
    for (const event of randomEvents(chance(seed))) {
      const chunks = live.write(event)
      for (const chunk of chunks) liveMessage.apply(chunk)
      log.push(...chunks)
    }
    const { writer, message } = rebuild(log.map(chunk => JSON.stringify(chunk)))
    const closing = writer.close(ending, metadata)
    expect(closing).toEqual(live.close(ending, metadata))
    for (const chunk of closing) {
      message.apply(chunk)
      liveMessage.apply(chunk)
    }
    expect(message.parts()).toEqual(liveMessage.parts())
    checkAsClient([...log, ...closing])
  }
})

test('an unreadable line of a log is left out', () => {
  const { message } = rebuild([
    '{"type":"text-start","id":"a"}',
    '{"type":"text-delta"}',
    'no json',
    '{"type":"text-delta","id":"a","delta":"x"}',
    '{"type":"new-kind"}',
  ])
  expect(message.parts()).toEqual([{ type: 'text', text: 'x', state: 'done' }])
})

test('a message has its parts in order, each with its end', () => {
  const message = createMessage()
  const events = [
    reasoning('r', 'hm'),
    text('a', 'Let '),
    text('a', 'me. '),
    call('c'),
    result('c', { ok: 1 }),
    call('e'),
    result('e', 0, 'no'),
    input('f', '{"x'),
    text('b', 'Done.'),
  ]
  for (const chunk of write(events, { status: 'cancelled' })) message.apply(chunk)
  const tool = { type: 'tool-Bash', providerExecuted: true }
  expect(message.parts()).toEqual([
    { type: 'reasoning', text: 'hm', state: 'done' },
    { type: 'text', text: 'Let me. ', state: 'done' },
    { ...tool, toolCallId: 'c', state: 'output-available', input: { command: 'ls' }, output: { ok: 1 } },
    { ...tool, toolCallId: 'e', state: 'output-error', input: { command: 'ls' }, errorText: 'no' },
    { ...tool, toolCallId: 'f', state: 'output-error', input: {}, errorText: 'cancelled' },
    { type: 'text', text: 'Done.', state: 'done' },
  ])
  expect(textOf(message.parts())).toBe('Let me. Done.')
})
