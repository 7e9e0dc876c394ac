import { beforeAll, describe, expect, test } from 'bun:test'
import { bounds } from '../../src/bounds.ts'
import { readAgent } from '../../src/core/agents/agent-files.ts'
import { shapeOf } from '../../src/read/json.ts'
import { useApp } from '../support/app.ts'
import { codeOf } from '../support/client.ts'
import { expectError } from '../support/errors.ts'

const app = useApp()
let id = ''
beforeAll(async () => {
  id = await app.sandbox()
})

const long = (length: number) => 'x'.repeat(length + 1)
const list = <Item>(length: number, item: Item): Item[] => Array(length + 1).fill(item)
const map = <Value>(length: number, key: (index: number) => string, value: Value): Record<string, Value> =>
  Object.fromEntries(Array.from({ length: length + 1 }, (_, index) => [key(index), value]))
const user = (text: string) => ({ role: 'user', parts: [{ type: 'text', text }] })

const create = 'POST /v1/sandboxes'
const exec = 'POST /v1/sandboxes/:id/exec'
const start = 'POST /v1/sandboxes/:id/processes'
const write = 'POST /v1/sandboxes/:id/files'
const chat = 'POST /v1/chat/echo'

const tooMuch: [string, string, string, object][] = [
  ['a slug', create, 'agent', { agent: long(bounds.slug) }],
  ['files', create, 'files', { agent: 'echo', files: map(bounds.files, index => `/${index}`, '') }],
  ['a path', create, 'files', { agent: 'echo', files: { [`/${long(bounds.path)}`]: '' } }],
  ['variables', create, 'envs', { agent: 'echo', envs: map(bounds.variables, index => `A${index}`, '') }],
  ['a variable', create, 'envs', { agent: 'echo', envs: { A: long(bounds.argument) } }],
  ['a variable in bytes', create, 'envs', { agent: 'echo', envs: { A: 'é'.repeat(bounds.argument / 2) } }],
  ["a variable's name", create, 'envs', { agent: 'echo', envs: { [long(bounds.variableName)]: '' } }],
  ['all variables', create, 'envs', { agent: 'echo', envs: map(10, index => `A${index}`, long(100_000)) }],
  ['set-up commands', create, 'setup', { agent: 'echo', setup: list(bounds.setupCommands, 'true') }],
  ['a set-up command', create, 'setup', { agent: 'echo', setup: [long(bounds.setupCommand)] }],
  ['rules', create, 'networkAllowOut', { agent: 'echo', networkAllowOut: list(bounds.networkRules, 'example.com') }],
  ['a command', exec, 'command', { command: long(bounds.argument) }],
  ['a command in bytes', exec, 'command', { command: `#${'é'.repeat(bounds.argument)}` }],
  ['variables of a command', exec, 'envs', { command: 'true', envs: map(bounds.variables, index => `A${index}`, '') }],
  ['all variables', exec, 'envs', { command: 'true', envs: map(10, index => `A${index}`, long(100_000)) }],
  ['a directory', exec, 'cwd', { command: 'true', cwd: `/${long(bounds.path)}` }],
  ['words', start, 'command', { command: list(bounds.arguments, 'x') }],
  ['all words', start, 'command', { command: list(9, long(100_000)) }],
  ['all variables', start, 'envs', { command: 'true', envs: map(10, index => `A${index}`, long(100_000)) }],
  ['files', write, 'files', { files: list(bounds.files, { path: '/a', content: '' }) }],
  ['files as a map', write, 'files', { files: map(bounds.files, index => `/${index}`, '') }],
  ['a name', 'POST /v1/sandboxes/:id/threads', 'name', { name: long(bounds.name) }],
  ['messages', chat, 'messages', { messages: list(bounds.messages, { role: 'user', parts: [] }) }],
  ['parts', chat, 'messages', { messages: [{ role: 'user', parts: list(bounds.parts, { type: 'text', text: '' }) }] }],
  ['an id', chat, 'messages', { messages: [{ id: long(bounds.id), ...user('a') }] }],
  ["a part's type", chat, 'messages', { messages: [{ role: 'user', parts: [{ type: long(bounds.word) }] }] }],
  ['a sandbox id', chat, 'sandboxId', { messages: [user('a')], sandboxId: long(bounds.id) }],
  ['a thread id', chat, 'threadId', { messages: [user('a')], sandboxId: ':id', threadId: long(bounds.id) }],
  ['a model', chat, 'options', { messages: [user('a')], options: { model: long(bounds.model) } }],
  ['a prompt', chat, 'options', { messages: [user('a')], options: { systemPrompt: long(bounds.systemPrompt) } }],
  ['tools', chat, 'options', { messages: [user('a')], options: { disallowedTools: list(bounds.tools, 'Bash') } }],
  ['a tool', chat, 'options', { messages: [user('a')], options: { disallowedTools: [long(bounds.tool)] } }],
  ['rules', chat, 'options', { messages: [user('a')], options: { deny: list(bounds.permissionRules, 'Bash') } }],
  ['a rule', chat, 'options', { messages: [user('a')], options: { allow: [long(bounds.permissionRule)] } }],
  ['tools of the client', chat, 'tools', { messages: [user('a')], tools: map(bounds.clientTools, n => `t${n}`, {}) }],
  ['a mode', chat, 'options', { messages: [user('a')], options: { permissionMode: long(bounds.word) } }],
  ['agents', 'POST /v1/tokens', 'agents', { agents: list(bounds.tokenAgents, 'echo') }],
  ['a user', 'POST /v1/tokens', 'userId', { userId: long(bounds.id) }],
]

describe('more than the bound is refused, by the name of the field and without what was sent: regression', () => {
  for (const [what, endpoint, field, body] of tooMuch) {
    test(`${endpoint}: ${what}`, async () => {
      const [method = '', path = ''] = endpoint.replaceAll(':id', id).split(' ')
      const answer = await app.ask(method, path, JSON.parse(JSON.stringify(body).replaceAll('":id"', `"${id}"`)))
      expectError(answer)
      expect((answer.body.error.field as string).split('.')[0]).toBe(field)
      expect(answer.body.message).toStartWith(field)
      expect(answer.body.message.length).toBeLessThan(300)
    })
  }

  const queries = [
    `/v1/sandboxes?before=${long(bounds.id)}`,
    `/v1/usage?from=${long(bounds.moment)}`,
    `/v1/agents/echo/logs?cursor=${long(bounds.id)}`,
    `/v1/agents/echo/logs?createdAfter=${long(bounds.moment)}`,
    `/v1/sandboxes/:id/files?path=/${long(bounds.path)}`,
    `/v1/chat/echo/:id/stream?threadId=${long(bounds.id)}`,
  ]
  for (const query of queries) {
    test(query.slice(0, 60), async () => {
      const answer = await app.ask('GET', query.replaceAll(':id', id))
      expectError(answer)
      expect(answer.body.message.length).toBeLessThan(300)
    })
  }
})

test('what a client may honestly send is taken up to the bound', async () => {
  const envs = map(bounds.variables - 2, index => `A${index}`, 'x'.repeat(500))
  envs[`A${'x'.repeat(bounds.variableName - 1)}`] = 'y'.repeat(bounds.argument - bounds.variableName - 1)
  const { body, status } = await app.ask('POST', `/v1/sandboxes/${id}/exec`, { command: 'env | wc -l', envs })
  expect({ status, count: Number(body.stdout) >= bounds.variables }).toEqual({ status: 200, count: true })
  const words = ['sh', '-c', 'exit $#', ...Array(100).fill('y'.repeat(4000))]
  const started = await app.ask('POST', `/v1/sandboxes/${id}/processes`, { command: words, envs })
  expect(started.status).toBe(201)
  const output = await (await app.request('GET', `/v1/sandboxes/${id}/processes/${started.body.pid}/output`)).text()
  expect(output).toContain('"exitCode":99')
})

describe('a body is refused by its shape, before anything is made of it: regression', () => {
  const texts: [string, string][] = [
    ['millions of arrays in each other', '['.repeat(5_000_000)],
    ['one array too deep', '['.repeat(bounds.jsonDepth + 1) + ']'.repeat(bounds.jsonDepth + 1)],
    ['millions of objects', `{"command":"true","x":[${'{},'.repeat(3_000_000)}{}]}`],
    ['hundreds of thousands of keys', `{"command":"true","x":{${'"a":1,'.repeat(bounds.jsonValues)}"a":1}}`],
  ]
  for (const [name, text] of texts) {
    test(name, async () => {
      const answer = await app.ask('POST', `/v1/sandboxes/${id}/exec`, undefined, { body: Buffer.from(text) })
      expect(codeOf(answer)).toBe('400 invalid_request')
      expect(answer.body.message).toMatch(/^body: (nested deeper than|more than) \d+/)
    })
  }

  test('brackets and commas of strings count for nothing', () => {
    const most = { depth: 2, values: 4 }
    const quoted = JSON.stringify({ a: '[{,"\\,[', '\\"[,': ['\\'] })
    expect(shapeOf(Buffer.from(quoted), most)).toEqual({ depth: 2, values: 4 })
    expect(shapeOf(Buffer.from('"never ended [[[ \\'), most)).toEqual({ depth: 0, values: 1 })
  })
})

test('an agent file is held to the same bounds', () => {
  const sandbox = (fields: object) => () => readAgent({ slug: 'a', sandbox: fields })
  expect(() => readAgent({ slug: long(bounds.slug) })).toThrow('slug: ')
  expect(sandbox({ envs: map(bounds.variables, index => `A${index}`, '') })).toThrow('sandbox.envs: ')
  expect(sandbox({ envs: { A: 'a\0b' } })).toThrow('sandbox.envs.A: ')
  expect(sandbox({ files: { [`/${long(bounds.path)}`]: '' } })).toThrow(/^sandbox\.files\.\/x{80,99}…: /)
  expect(sandbox({ setup: list(bounds.setupCommands, 'true') })).toThrow('sandbox.setup: ')
  expect(() => readAgent({ slug: 'a', options: { acp: { args: list(bounds.arguments, '') } } })).toThrow(
    'options.acp.args',
  )
})

test('what the sandbox says of a path or a program repeats the beginning of it', async () => {
  const path = `/${'x'.repeat(200)}/${'y'.repeat(200)}`
  const home = `/v1/sandboxes/${id}`
  const answers = [
    await app.ask('GET', `${home}/files?path=${path}`),
    await app.ask('GET', `${home}/files/list?path=${path}`),
    await app.ask('DELETE', `${home}/files?path=${path}`),
    await app.ask('POST', `${home}/exec`, { command: 'true', cwd: path }),
    await app.ask('POST', `${home}/processes`, { command: ['z'.repeat(500)] }),
    await app.ask('POST', `${home}/files`, { path: `/${long(300)}`, content: '' }),
  ]
  for (const { status, body } of answers) {
    expect(status).toBeOneOf([400, 404])
    expect(body.message.length).toBeLessThan(200)
  }
})
