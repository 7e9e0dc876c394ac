import { describe, expect, test } from 'bun:test'
import { createCalls } from '../../src/http/mcp/calls.ts'
import { readLines } from '../../src/http/mcp/read-lines.ts'
import { useApp } from '../support/app.ts'

const app = useApp()
const rpc = (method: string, params?: object, id: unknown = 1) => ({ jsonrpc: '2.0', id, method, params })
const post = (body: unknown, headers: Record<string, string> = {}) => app.ask('POST', '/v1/mcp', body, { headers })

const META = 'io.modelcontextprotocol'
/** A request of the newest revision. */
const plain = (method: string, params: object = {}, headers: Record<string, string> = {}) => {
  const version = '2026-07-28'
  const _meta = { [`${META}/protocolVersion`]: version, [`${META}/clientCapabilities`]: {} }
  const all = { 'mcp-protocol-version': version, 'mcp-method': method, ...headers }
  return post(rpc(method, { ...params, _meta }), all)
}

describe('a client that begins with initialize', () => {
  test.each(['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'])('of %s is answered in it', async version => {
    const { body, headers } = await post(rpc('initialize', { protocolVersion: version, capabilities: {} }))
    expect(body.result).toMatchObject({
      protocolVersion: version,
      capabilities: { tools: {} },
      serverInfo: { name: 'threadbox', version: expect.any(String) },
      instructions: expect.stringContaining('create_sandbox'),
    })
    expect(headers.get('mcp-session-id')).toMatch(/^[0-9a-f-]{36}$/)
    const next = { 'mcp-protocol-version': version, 'mcp-session-id': headers.get('mcp-session-id') ?? '' }
    expect((await post({ jsonrpc: '2.0', method: 'notifications/initialized' }, next)).status).toBe(202)
    expect((await post(rpc('ping'), next)).body).toEqual({ jsonrpc: '2.0', id: 1, result: {} })
  })

  test('of another revision is offered the newest of them', async () => {
    const { body } = await post(rpc('initialize', { protocolVersion: '2031-01-01' }))
    expect(body.result.protocolVersion).toBe('2025-11-25')
  })
})

describe('a client that begins with nothing', () => {
  test('finds out what is spoken here', async () => {
    const { body, headers } = await plain('server/discover')
    expect(body.result).toMatchObject({
      resultType: 'complete',
      supportedVersions: expect.arrayContaining(['2026-07-28', '2025-11-25']),
      capabilities: { tools: {} },
      _meta: { [`${META}/serverInfo`]: { name: 'threadbox' } },
    })
    expect(headers.get('mcp-session-id')).toBeNull()
  })

  test('lists and calls tools', async () => {
    const listed = await plain('tools/list')
    expect(listed.body.result).toMatchObject({ resultType: 'complete', cacheScope: 'private' })
    expect(listed.body.result.tools.length).toBeGreaterThan(10)
    const called = await plain(
      'tools/call',
      { name: 'list_sandboxes', arguments: {} },
      { 'mcp-name': 'list_sandboxes' },
    )
    expect(called.body.result).toMatchObject({ resultType: 'complete', structuredContent: { sandboxes: [] } })
  })

  test('is refused when its headers and its body say two things', async () => {
    const code = async (answer: ReturnType<typeof plain>) => [(await answer).status, (await answer).body.error.code]
    expect(await code(plain('tools/list', {}, { 'mcp-method': 'tools/call' }))).toEqual([400, -32020])
    expect(await code(plain('tools/list', {}, { 'mcp-protocol-version': '2025-11-25' }))).toEqual([400, -32020])
    expect(await code(plain('tools/call', { name: 'exec' }, { 'mcp-name': 'chat' }))).toEqual([400, -32020])
    const bare = post(rpc('tools/list'), { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/list' })
    expect(await code(bare)).toEqual([400, -32602])
    expect(await code(plain('initialize'))).toEqual([404, -32601])
  })
})

describe('what is wrong is told in the protocol’s words', () => {
  const codes: [string, unknown, number, number][] = [
    ['no JSON', new TextEncoder().encode('{"jsonrpc":'), 400, -32700],
    ['values too deep', new TextEncoder().encode('['.repeat(1000)), 400, -32700],
    ['no JSON-RPC', { id: 1, method: 'ping' }, 400, -32600],
    ['no method', { jsonrpc: '2.0', id: 1 }, 400, -32600],
    ['an id that is an object', rpc('ping', {}, {}), 400, -32600],
    ['a long id', rpc('ping', {}, 'a'.repeat(1000)), 400, -32600],
    ['parameters as a list', { ...rpc('ping'), params: [] }, 400, -32600],
    ['a null', null, 400, -32600],
    ['a method that is not there', rpc('resources/list'), 200, -32601],
    ['a method of every object', rpc('constructor'), 200, -32601],
    ['a tool that is not there', rpc('tools/call', { name: 'toString' }), 200, -32602],
    ['a call of no tool', rpc('tools/call'), 200, -32602],
    ['an empty batch', [], 400, -32600],
    ['a batch of thousands', Array.from({ length: 5000 }, (_, id) => rpc('ping', {}, id)), 400, -32600],
  ]
  test.each(codes)('%s', async (_, body, status, code) => {
    const answer = await app.ask('POST', '/v1/mcp', body)
    expect({ status: answer.status, code: answer.body.error?.code }).toEqual({ status, code })
  })

  test('a revision that is not spoken here', async () => {
    const { status, body } = await post(rpc('ping'), { 'mcp-protocol-version': '1999-01-01' })
    expect([status, body.error.code, body.error.data.supported]).toEqual([
      400,
      -32022,
      expect.arrayContaining(['2026-07-28']),
    ])
  })

  test('a body that is too large, in those of the API', async () => {
    const { status, body } = await post(rpc('tools/call', { name: 'a'.repeat(11 * 1024 * 1024) }))
    expect([status, body.error.code]).toEqual([413, 'payload_too_large'])
  })

  test('there is no stream without a request', async () => {
    expect((await app.ask('GET', '/v1/mcp')).status).toBe(405)
  })
})

test('a batch of an older client is answered as one', async () => {
  const { body } = await post([rpc('ping', {}, 'a'), { jsonrpc: '2.0', method: 'notifications/initialized' }, rpc('x')])
  expect(body).toEqual([
    { jsonrpc: '2.0', id: 'a', result: {} },
    { jsonrpc: '2.0', id: 1, error: { code: -32601, message: 'There is no method x here.' } },
  ])
  expect((await post([rpc('ping')], { 'mcp-protocol-version': '2025-11-25' })).status).toBe(400)
})

test('a long call is answered by events where the client takes them, and tells how it gets on', async () => {
  const id = await app.sandbox()
  const params = { name: 'exec', arguments: { sandboxId: id, command: 'echo on it' }, _meta: { progressToken: 'p' } }
  const headers = { accept: 'application/json, text/event-stream' }
  const response = await app.request('POST', '/v1/mcp', { body: rpc('tools/call', params), headers })
  const text = await response.text()
  const messages = [...text.matchAll(/^data: (.*)$/gm)].map(([, data = '']) => JSON.parse(data))
  expect(messages).toMatchObject([
    { method: 'notifications/progress', params: { progressToken: 'p', progress: 1, message: 'on it' } },
    { id: 1, result: { structuredContent: { stdout: 'on it\n', exitCode: 0 } } },
  ])
  const plain = await post(rpc('tools/call', params), { accept: 'application/json' })
  expect(plain.body.result.structuredContent.exitCode).toBe(0)
})

test('a session is a name alone: any does that one can write, and none is known twice', async () => {
  const begin = () => post(rpc('initialize', { protocolVersion: '2025-11-25' }))
  const begun = await Promise.all(Array.from({ length: 300 }, begin))
  expect(new Set(begun.map(({ headers }) => headers.get('mcp-session-id'))).size).toBe(300)
  expect((await post(rpc('ping'), { 'mcp-session-id': 'of another server' })).status).toBe(400)
  expect((await post(rpc('ping'), { 'mcp-session-id': 'of-another-server' })).status).toBe(200)
})

test('nothing is kept of sessions whose calls are over', () => {
  const calls = createCalls()
  const cancelled: number[] = []
  const begun = Array.from({ length: 1000 }, (_, index) => {
    const session = { caller: 'a', sessionId: `s${index}` }
    return calls.begin({ ...session, id: 1 }, () => void cancelled.push(index))
  })
  expect(calls.sessions).toBe(1000)
  calls.cancel({ caller: 'a', sessionId: 's3', id: 1 })
  calls.cancelAll({ caller: 'b', sessionId: 's4' })
  calls.cancelAll({ caller: 'a', sessionId: undefined })
  expect(cancelled).toEqual([3])
  for (const each of begun) each[Symbol.dispose]()
  expect(calls.sessions).toBe(0)
})

test('lines are the same, however the pieces of a file come', async () => {
  const text = 'one\ntwo\nthree\nfour'
  for (let size = 1; size <= text.length; size++) {
    const pieces = Array.from({ length: Math.ceil(text.length / size) }, (_, index) =>
      Buffer.from(text.slice(index * size, (index + 1) * size)),
    )
    const read = await readLines(pieces, { line: 2, lines: 2, characters: 100 })
    expect(read).toEqual({ content: 'two\nthree\n', nextLine: 4 })
  }
})
