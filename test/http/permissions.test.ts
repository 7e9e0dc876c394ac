import { afterAll, expect, test } from 'bun:test'
import { useApp } from '../support/app.ts'
import { say } from '../support/chat.ts'
import { codeOf } from '../support/client.ts'
import { type ModelCall, startModelServer } from '../support/model-server.ts'
import { readChunks } from '../support/sse.ts'

const model = startModelServer()
afterAll(() => model.stop())
const app = useApp([], {
  ANTHROPIC_API_KEY: 'sk-ant-test',
  ANTHROPIC_BASE_URL: model.access('anthropic').baseUrl.replace(/\/v1$/, ''),
})

const bash = (command: string): ModelCall => ({ name: 'Bash', input: { command } })
const write = (path: string): ModelCall => ({ name: 'Write', input: { file_path: path, content: 'x' } })

/** What the calls of one answer come to: `ok`, or why they were refused. */
async function tryCalls(agent: object, chat: object, calls: ModelCall[]) {
  app.agent('ruled', {}, { engine: 'ai-sdk', model: 'anthropic/claude-sonnet-4-6', options: agent })
  model.play({ calls }, { text: 'Done.' })
  const body = { messages: [say('Go.')], options: chat }
  const response = await app.request('POST', '/v1/chat/ruled', { body })
  const sandboxId = response.headers.get('x-sandbox-id') ?? ''
  const chunks: any[] = await readChunks(response)
  const outcomes = chunks.flatMap(({ type, errorText }) =>
    type === 'tool-output-available' ? ['ok'] : type === 'tool-output-error' ? [errorText] : [],
  )
  return { sandboxId, outcomes, request: model.requests.at(-1) }
}

test('a call that a rule denies does not run, and the model is told why', async () => {
  const { sandboxId, outcomes, request } = await tryCalls({ deny: ['Bash(touch:*)', 'Edit(kept/**)'] }, {}, [
    bash('true && touch /home/user/made'),
    bash('bash -c "touch /home/user/made"'),
    write('kept/a'),
    write('/home/user/x/../kept/a'),
    write('free'),
    bash('echo hello'),
  ])
  const rule = (name: string, tool: string) => `The rule ${name} denies this call of ${tool}.`
  expect(outcomes.sort()).toEqual([
    ...[rule('Bash(touch:*)', 'Bash'), rule('Bash(touch:*)', 'Bash')],
    ...[rule('Edit(kept/**)', 'Write'), rule('Edit(kept/**)', 'Write')],
    ...['ok', 'ok'],
  ])
  expect(request?.results.join('\n')).toContain('The rule Bash(touch:*) denies')
  expect(await app.shell(sandboxId, 'ls /home/user')).toBe('free\n')
})

test('a chat is denied what its own rules deny, and gets nothing that its agent denies regression', async () => {
  const agent = { permissionMode: 'plan', deny: ['Bash(rm:*)'], allow: ['Bash(echo:*)'] }
  const chat = { permissionMode: 'bypassPermissions', allow: ['*', 'Bash', 'Write'], deny: ['Bash(echo b:*)'] }
  const { sandboxId, outcomes } = await tryCalls(agent, chat, [
    bash('echo a'),
    bash('echo b'),
    bash('rm x'),
    bash('echo a; touch made'),
    write('made'),
  ])
  expect(outcomes.filter(outcome => outcome === 'ok')).toHaveLength(1)
  expect(outcomes).toHaveLength(5)
  expect(await app.shell(sandboxId, 'ls /home/user')).toBe('')
})

test('an agent without rules does all it is asked to', async () => {
  for (const options of [{}, { permissionMode: 'default' }, { permissionMode: 'acceptEdits', allow: ['Bash(ls)'] }]) {
    const { outcomes } = await tryCalls(options, {}, [bash('echo a > b'), write('/tmp/c')])
    expect(outcomes).toEqual(['ok', 'ok'])
  }
})

test('a tool that a rule denies for every input is hidden from the model', async () => {
  const { request } = await tryCalls({ deny: ['Edit', 'WebFetch'] }, { deny: ['TodoWrite'] }, [bash('true')])
  expect(request?.tools).toEqual(['Bash', 'Read', 'Glob', 'Grep', 'LS'])
})

const schema = { type: 'object', properties: { city: { type: 'string' } } }
const tool = { description: 'Shows a map.', inputSchema: schema }
const wrong: [string, object, string][] = [
  ['a rule that is not closed', { options: { deny: ['Bash(rm'] } }, 'options.deny.0: "Bash(rm" is no rule'],
  ['a rule with a wrong pattern', { options: { ask: ['Bash', 'Task(x)'] } }, 'options.ask.1: "Task(x)" is no rule'],
  ['a rule that allows more than one command', { options: { allow: ['Bash(a; b:*)'] } }, 'options.allow.0'],
  ['no list', { options: { deny: 'Bash' } }, 'options.deny'],
  ['too many rules', { options: { deny: Array.from({ length: 1001 }, () => 'Bash') } }, 'options.deny'],
  ['a profile that is not known', { stream: 'some' }, 'stream'],
  ['a tool with a wrong name', { tools: { 'a b': tool } }, 'tools'],
  ['a tool of the server', { tools: { Bash: tool } }, 'tools.Bash: the server has a tool of this name'],
  ['a tool of an MCP server', { tools: { mcp__a__b: tool } }, 'tools.mcp__a__b: the server has a tool of this name'],
  ['a name of every object', { tools: { constructor: tool } }, 'tools.constructor'],
  ['a tool without a schema', { tools: { map: { description: 'x' } } }, 'tools.map.inputSchema'],
  ['a schema of no object', { tools: { map: { description: 'x', inputSchema: { type: 'string' } } } }, 'tools.map'],
  [
    'a schema that is too large',
    { tools: { map: { description: 'x', inputSchema: { type: 'object', title: 'x'.repeat(40_000) } } } },
    'tools.map: the schema',
  ],
  ['too many tools', { tools: Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`t${n}`, tool])) }, 'tools'],
]
test.each(wrong)('a chat with %s is refused', async (_, fields, told) => {
  const answer = await app.ask('POST', '/v1/chat/echo', { messages: [say('Hi.')], ...fields })
  expect([codeOf(answer), answer.body.message]).toEqual(['400 invalid_request', expect.stringContaining(told)])
})

test('the model sees the tools of the agent and of the chat beside its own', async () => {
  const options = { clientTools: { agents: tool } }
  app.agent('paged', {}, { engine: 'ai-sdk', model: 'anthropic/claude-sonnet-4-6', options })
  model.play({ text: 'Yes.' })
  const body = { messages: [say('Go.')], tools: { 'show-map': tool } }
  await readChunks(await app.request('POST', '/v1/chat/paged', { body }))
  const tools: any[] = model.requests.at(-1)?.body.tools
  expect(tools.map(({ name }) => name)).toEqual(expect.arrayContaining(['Bash', 'agents', 'show-map']))
  expect(tools.find(({ name }) => name === 'show-map')).toMatchObject({
    description: 'Shows a map.',
    input_schema: schema,
  })
})

test.each([
  ['the chat', {}, { stream: 'full' }],
  ['the agent', { stream: 'full' }, {}],
] as const)('the profile of a stream is that of %s', async (_, options, fields) => {
  app.agent('streamed', {}, { engine: 'echo', options })
  const body = { messages: [say('Hi.')], ...fields }
  const [start]: any[] = await readChunks(await app.request('POST', '/v1/chat/streamed', { body }))
  expect(start).toEqual({ type: 'start', messageId: expect.stringMatching(/^msg_/) })
  const plain: any[] = await readChunks(
    await app.request('POST', '/v1/chat/streamed', { body: { ...body, stream: 'contract' } }),
  )
  expect(plain[0]).toEqual({ type: 'start' })
})
