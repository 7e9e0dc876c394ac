import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { join } from 'node:path'
import { aiSdk } from '../../../plugins/ai-sdk/index.ts'
import type { McpServer, TurnOptions } from '../../../src/plugin-api/index.ts'
import { startMcpServer } from '../../support/mcp-server.ts'
import { startModelServer } from '../../support/model-server.ts'
import { openTestSandbox, type TestSandbox } from '../../support/sandbox.ts'
import { playTurn } from '../../support/turn.ts'
import { engineOf } from '../engine-of.ts'

const model = startModelServer()
const remote = startMcpServer()
let sandbox: TestSandbox
beforeAll(async () => {
  sandbox = await openTestSandbox()
  const script = Bun.file(join(import.meta.dir, 'mcp-server.py'))
  await sandbox.environment.files.write('/srv/mcp.py', await script.bytes())
}, 60_000)
afterAll(async () => {
  await sandbox.close()
  await Promise.all([model.stop(), remote.stop()])
}, 60_000)
beforeEach(() => {
  model.requests.length = 0
})

const inside: McpServer = { type: 'stdio', command: 'python3', args: ['/srv/mcp.py'], env: { MARK: 'marked' } }
const play = (options: TurnOptions, context = {}) =>
  playTurn({
    engine: engineOf(aiSdk),
    environment: sandbox.environment,
    prompt: 'Go.',
    context: { openModel: () => model.access('anthropic'), options, ...context },
  })
const servers = () => sandbox.shell('pgrep -fc "[m]cp.py" || true')

test('a stdio server runs in the sandbox, its tools are called, and it is gone after the turn', async () => {
  const calls = ['add', 'where', 'draw', 'fail'].map(name => ({ name: `mcp__in__${name}`, input: { a: 1, b: 2 } }))
  model.play({ calls }, { text: 'Done.' })
  const { end, parts } = await play({ mcpServers: { in: inside } })
  expect(end).toEqual({ status: 'completed' })
  const byName = Object.fromEntries(parts.map(part => [part.type, part]))
  expect(byName['tool-mcp__in__add']?.output).toBe('3')
  expect(byName['tool-mcp__in__where']?.output).toBe('/home/user marked')
  expect(byName['tool-mcp__in__draw']?.output).toMatchObject([{ text: 'a dot' }, { mediaType: 'image/png' }])
  expect(byName['tool-mcp__in__fail']?.errorText).toBe('it failed')
  expect(model.requests[0]?.tools).toContain('mcp__in__add')
  expect(await servers()).toBe('0\n')
})

test('a server that asks by long names and reads no answer is ended, and the turn goes on: regression', async () => {
  const asking = `
import json, sys
sys.stdin.readline()
line = json.dumps({'jsonrpc': '2.0', 'id': 'x' * 1000000, 'method': 'none'}) + '\\n'
while True: sys.stdout.write(line)
`
  model.play({ text: 'Done.' })
  const startedAt = performance.now()
  const { end, events } = await play({
    mcpServers: { in: { type: 'stdio', command: 'python3', args: ['-c', asking] } },
  })
  expect(end).toEqual({ status: 'completed' })
  expect(events.find(event => event.type === 'notice')).toMatchObject({ code: 'mcp_failed' })
  expect(performance.now() - startedAt).toBeLessThan(15_000)
}, 60_000)

test('a server elsewhere that answers without end is left, and the turn goes on: regression', async () => {
  const piece = Buffer.alloc(2 ** 20, 'x')
  const body = () => new ReadableStream({ pull: controller => controller.enqueue(piece) }, { highWaterMark: 0 })
  const headers = { 'content-type': 'text/event-stream' }
  await using flood = Bun.serve({ port: 0, idleTimeout: 0, fetch: () => new Response(body(), { headers }) })
  model.play({ text: 'Done.' })
  const startedAt = performance.now()
  const { end, events } = await play({ mcpServers: { out: { type: 'http', url: flood.url.href } } })
  expect(end).toEqual({ status: 'completed' })
  expect(events.find(event => event.type === 'notice')).toMatchObject({ code: 'mcp_failed' })
  expect(performance.now() - startedAt).toBeLessThan(15_000)
}, 60_000)

test('a cancel leaves no server', async () => {
  const abort = new AbortController()
  model.play({ text: 'word '.repeat(100), everyMs: 50 })
  const running = playTurn({
    engine: engineOf(aiSdk),
    environment: sandbox.environment,
    prompt: 'Go.',
    context: {
      ...{ openModel: () => model.access('anthropic'), options: { mcpServers: { in: inside } }, signal: abort.signal },
    },
    onEvent: ({ type }) => type === 'text' && abort.abort(),
  })
  expect((await running).end).toEqual({ status: 'cancelled' })
  expect(await servers()).toBe('0\n')
})

const remotes: ['http' | 'sse', string][] = [
  ['http', remote.url],
  ['sse', remote.sseUrl],
]
test.each(remotes)('a server over %s is called by the fetch of the sandbox, with its headers', async (type, url) => {
  const fetched: string[] = []
  const byRules = (address: string, init?: RequestInit) => {
    fetched.push(address)
    return fetch(address, init)
  }
  remote.requests.length = 0
  model.play({ calls: [{ name: 'mcp__out__hello', input: { name: 'you' } }] }, { text: 'Done.' })
  const { parts } = await play({ mcpServers: { out: { type, url, headers: { 'x-key': 'k' } } } }, { fetch: byRules })
  expect(parts[0]).toMatchObject({ type: 'tool-mcp__out__hello', output: 'hello you' })
  expect(new Set(fetched)).toEqual(new Set([url]))
  expect(remote.requests.map(({ headers }) => headers.get('x-key'))).toEqual(remote.requests.map(() => 'k'))
})

const broken: [string, McpServer][] = [
  ['is not there', { type: 'stdio', command: '/no/such' }],
  ['ends at once', { type: 'stdio', command: 'false' }],
  ['is unreachable', { type: 'http', url: 'http://127.0.0.1:1/mcp' }],
  ['is unreachable by SSE', { type: 'sse', url: 'http://127.0.0.1:1/sse' }],
]
test.each(broken)('a server that %s is told of, and the turn goes on', async (_, server) => {
  model.play({ text: 'Without it.' })
  const { end, text, events } = await play({ mcpServers: { broken: server, in: inside } })
  expect([end.status, text]).toEqual(['completed', 'Without it.'])
  expect(events.filter(({ type }) => type === 'notice')).toMatchObject([{ code: 'mcp_failed' }])
  expect(model.requests[0]?.tools).toContain('mcp__in__add')
})

const disallowed: [string, TurnOptions, string[]][] = [
  ['one tool', { disallowedTools: ['mcp__in__add'] }, ['where', 'draw', 'fail']],
  ['a server', { disallowedTools: ['mcp__in'] }, []],
  ['what may change something, in plan mode', { permissionMode: 'plan' }, ['where']],
]
test.each(disallowed)('%s is taken away', async (_, options, left) => {
  model.play({ text: 'Hi.' })
  await play({ ...options, mcpServers: { in: inside } })
  const names = model.requests[0]?.tools.filter(name => name.startsWith('mcp__'))
  expect(names).toEqual(left.map(name => `mcp__in__${name}`))
})
