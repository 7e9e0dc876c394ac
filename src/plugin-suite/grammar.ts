import { parseChunk } from '../stream/chunk.ts'
import type { Expect } from './kit.ts'
import type { TurnResult } from './turn.ts'

/**
 * Asserts that clients know every chunk, that each part begins and ends once, and that no tool call is left open, except by a
 * turn that waits. `known`: the calls that an earlier turn of the reply left open.
 */
export function expectGrammar(
  expect: Expect,
  { chunks, events, end }: TurnResult,
  known: readonly string[] = [],
): void {
  const open = new Set<string>()
  const tools = new Map<string, string>(known.map(id => [id, 'open']))
  for (const chunk of chunks) {
    expect(parseChunk(JSON.stringify(chunk))).toEqual(chunk)
    if ('delta' in chunk) expect([chunk.delta !== '', open.has(chunk.id)]).toEqual([true, true])
    if (chunk.type === 'text-start' || chunk.type === 'reasoning-start') {
      expect(open.size).toBe(0)
      open.add(chunk.id)
    }
    if (chunk.type === 'text-end' || chunk.type === 'reasoning-end') expect(open.delete(chunk.id)).toBe(true)
    if ('toolCallId' in chunk) {
      const before = tools.get(chunk.toolCallId)
      expect(`${before ?? 'nothing'}, ${chunk.type}`).toMatch(toolOrder)
      tools.set(chunk.toolCallId, chunk.type)
    }
  }
  expect(open.size).toBe(0)
  if (end.status !== 'waiting') {
    expect([...tools.values()].filter(last => !last.startsWith('tool-output'))).toEqual([])
  }
  expect(chunks.at(-1)?.type).toBe('finish')
  // The writer drops events that make no sense. A correct engine has none of these.
  const called = events.flatMap(event => (event.type === 'tool-call' ? [event.callId] : []))
  expect(new Set(called).size).toBe(called.length)
}

const toolOrder = new RegExp(
  [
    'nothing, tool-input-start',
    'tool-input-(start|delta), tool-input-(delta|available)',
    'tool-input-(start|delta|available), tool-output-error',
    'tool-input-available, tool-(output-available|approval-request)',
    '(open|tool-approval-request), tool-output-(available|error|denied)',
    'open, tool-approval-request',
  ].join('|'),
)
