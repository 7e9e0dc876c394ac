import { describe, expect, test } from 'bun:test'
import { DONE, frame, HEARTBEAT, OPEN, parseLastEventId, streamHeaders } from '../../src/stream/frame.ts'

const said = (bytes: Uint8Array) => new TextDecoder().decode(bytes)
const runId = `run_${Bun.randomUUIDv7()}`

test('a frame is its id, its chunk and an empty line', () => {
  expect(said(frame('run_1', 7, '{"type":"start"}'))).toBe('id: run_1/7\ndata: {"type":"start"}\n\n')
})

test('the opening, the sign of life and the end', () => {
  expect([OPEN, HEARTBEAT, DONE].map(said)).toEqual([': open\n\n', ': keep-alive\n\n', 'data: [DONE]\n\n'])
})

test('the headers are those of the contract', () => {
  expect(streamHeaders({ sandboxId: 'sbx_1', threadId: 'thr_1', runId: 'run_1' })).toEqual({
    'content-type': 'text/event-stream',
    'cache-control': 'no-cache, no-transform',
    connection: 'keep-alive',
    'x-vercel-ai-ui-message-stream': 'v1',
    'x-accel-buffering': 'no',
    'x-sandbox-id': 'sbx_1',
    'x-thread-id': 'thr_1',
    'x-run-id': 'run_1',
    'access-control-expose-headers': 'x-sandbox-id, x-thread-id, x-run-id',
  })
})

describe('Last-Event-ID', () => {
  const scenarios: [string, string | null | undefined, number | undefined][] = [
    ['is read back', `${runId}/12`, 12],
    ['may be 0', `${runId}/0`, 0],
    ['may have spaces around it', ` ${runId}/3 `, 3],
    ['may be absent', undefined, undefined],
    ['may be null', null, undefined],
    ['of another server is none', '42', undefined],
    ['without a number is none', `${runId}/`, undefined],
    ['with a sign is none', `${runId}/-1`, undefined],
    ['with more behind it is none', `${runId}/1/2`, undefined],
    ['too long to be a number is none', `${runId}/${'9'.repeat(20)}`, undefined],
  ]
  for (const [name, value, seq] of scenarios)
    test(name, () => expect(parseLastEventId(value)).toEqual(seq === undefined ? undefined : { runId, seq }))
})
