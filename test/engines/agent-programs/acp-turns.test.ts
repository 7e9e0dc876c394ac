import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { acp } from '../../../plugins/agent-programs/index.ts'
import { createPermissions } from '../../../src/core/permissions/decide.ts'
import type { AcpOptions, EngineContext, Permissions, TurnOptions } from '../../../src/plugin-api/index.ts'
import { accessInside, bringScriptedAgent, openAgentSandbox } from '../../support/agent-sandbox.ts'
import { startModelServer } from '../../support/model-server.ts'
import type { TestSandbox } from '../../support/sandbox.ts'
import { playTurn, type TurnResult } from '../../support/turn.ts'
import { until } from '../../support/until.ts'
import { engineOf } from '../engine-of.ts'

const model = startModelServer()
const engine = engineOf(acp)
let sandbox: TestSandbox
beforeAll(async () => {
  sandbox = await openAgentSandbox(model)
  await bringScriptedAgent(sandbox.environment)
}, 60_000)
afterAll(async () => {
  await engine.close?.()
  await sandbox.close()
  await model.stop()
}, 60_000)

interface Asked {
  acp?: AcpOptions
  options?: TurnOptions
  context?: Partial<EngineContext>
  systemPrompt?: string
  after?: TurnResult
  onEvent?: (event: { type: string }) => void
}

/** A turn, after another of the same thread or as the first. */
function ask(
  prompt: string,
  { acp = { command: 'acp-agent' }, options, context, systemPrompt, after, onEvent }: Asked = {},
) {
  const session = after?.events.findLast(event => event.type === 'session')
  return playTurn({
    ...{ engine, environment: sandbox.environment, prompt },
    ...(after && { history: after.thread }),
    ...(onEvent && { onEvent }),
    turn: {
      ...(session?.type === 'session' && { engineSessionId: session.engineSessionId }),
      ...(systemPrompt !== undefined && { systemPrompt }),
    },
    context: { openModel: () => accessInside(model, 'anthropic'), options: { acp, ...options }, ...context },
  })
}

/** What the scripted agent tells of itself, and which of its processes it is. */
const stateOf = ({ text }: TurnResult): any => JSON.parse(text)
const noticesOf = ({ events }: TurnResult) => events.flatMap(event => (event.type === 'notice' ? [event.text] : []))
const thread = () => ({ threadId: crypto.randomUUID() })

describe('what a program says', () => {
  test('its thoughts are reasoning', async () => {
    const { parts } = await ask('think Hm.')
    expect(parts).toMatchObject([
      { type: 'reasoning', text: 'Hm.' },
      { type: 'text', text: 'So.' },
    ])
  })

  test('its plan is a list of what is to do, once for each change', async () => {
    const { parts } = await ask('plan')
    expect(parts.slice(0, -1).map(({ type, input }: any) => [type, input.todos[0]])).toEqual(
      ['pending', 'in_progress', 'completed'].map(status => [
        'tool-TodoWrite',
        { content: 'Look around', activeForm: 'Look around', status },
      ]),
    )
  })

  test('a tool that fails is shown with what it printed', async () => {
    const { parts } = await ask('run echo no; exit 3')
    expect(parts).toMatchObject([{ type: 'tool-Bash', state: 'output-error', errorText: 'no\n' }])
  })

  test('a refusal of its model fails the turn', async () => {
    const { end } = await ask('refuse')
    expect(end).toEqual({ status: 'failed', error: { code: 'model_refused', message: 'The model refused to answer.' } })
  })

  test('its death is told with its last words', async () => {
    const { end } = await ask('die')
    expect(end.error?.message).toBe('The program ended with exit code 3. last words')
  })
})

describe('permissions', () => {
  const cases = [
    { mode: '', kind: 'edit', options: {}, told: 'allow_once' },
    { mode: 'default', kind: 'execute', options: {}, told: 'allow_once' },
    { mode: 'plan', kind: 'edit', options: {}, told: 'reject_once' },
    { mode: 'plan', kind: 'read', options: {}, told: 'allow_once' },
    { mode: 'bypassPermissions', kind: 'execute', options: { disallowedTools: ['Bash(rm:*)'] }, told: 'reject_once' },
    { mode: 'bypassPermissions', kind: 'execute', options: { deny: ['Bash'] }, told: 'reject_once' },
    { mode: 'bypassPermissions', kind: 'edit', options: { deny: ['Edit(/tmp/**)'] }, told: 'reject_once' },
    { mode: 'bypassPermissions', kind: 'edit', options: { deny: ['Edit(/var/**)'] }, told: 'allow_once' },
    { mode: 'plan', kind: 'edit', options: { allow: ['Edit(/tmp/**)'] }, told: 'allow_once' },
  ]
  test.each(cases)('in mode "$mode" a call of kind $kind gets $told', async ({ mode, kind, options, told }) => {
    const own = { ...options, ...(mode && { permissionMode: mode }) }
    const place = { cwd: '/home/user', home: '/home/user' }
    const permissions = createPermissions({ agent: own, chat: {}, asks: false, canAsk: false, place })
    const { parts } = await ask(`ask ${kind}`, { options: own, context: { permissions } })
    expect(parts.slice(0, 2)).toMatchObject([{ input: { path: '/tmp/x' }, output: told }, { type: 'step-start' }])
  })
})

describe('settings', () => {
  test('are chosen by id or by name', async () => {
    const command = 'acp-agent'
    const byId = await ask('state', { acp: { command, mode: 'free', config: { effort: 'high' } } })
    const byName = await ask('state', {
      acp: { command, mode: 'do as you like', config: { 'Thinking effort': 'A lot' } },
    })
    for (const result of [byId, byName]) expect(stateOf(result)).toMatchObject({ mode: 'free', effort: 'high' })
  })

  test('that the program does not have are told of, and the turn goes on', async () => {
    const result = await ask('state', {
      acp: { command: 'acp-agent', mode: 'wild', config: { colour: 'red', effort: 'some' } },
    })
    expect(stateOf(result)).toMatchObject({ mode: 'ask', effort: 'low' })
    expect(noticesOf(result)).toEqual([
      'The mode wild could not be set: the program has the modes ask, plan, free.',
      'The option colour could not be set: the program has the options effort.',
      'The option effort could not be set: it has no value some.',
    ])
  })

  test('plan is the mode of that name', async () => {
    expect(stateOf(await ask('state', { options: { permissionMode: 'plan' } })).mode).toBe('plan')
  })

  test('the program gets its variables, those of the sandbox, and the way to the model', async () => {
    const { env } = stateOf(
      await ask('state', {
        acp: { command: 'acp-agent', env: { OWN: 'mine' } },
        context: { env: { STAGE: 'test', OWN: 'no' } },
      }),
    )
    expect(env).toMatchObject({
      ...{ OWN: 'mine', STAGE: 'test', THREADBOX_MODEL: 'fake-model', THREADBOX_MODEL_WIRE: 'anthropic' },
      ...{ THREADBOX_MODEL_URL: 'http://127.0.0.1:3128/v1', THREADBOX_MODEL_TOKEN: 'run-token' },
    })
  })

  test('MCP servers are passed on, and one that the program cannot reach is told of', async () => {
    const mcpServers = {
      'user-tools': { type: 'stdio', command: 'node', args: ['tools.js'], env: { A: '1' } },
      web: { type: 'http', url: 'https://mcp.example', headers: { authorization: 'x' } },
      old: { type: 'sse', url: 'https://mcp.example/sse' },
    } as const
    const result = await ask('state', { options: { mcpServers } as unknown as TurnOptions })
    expect(stateOf(result).servers.map((server: string) => JSON.parse(server))).toEqual([
      { name: 'user-tools', command: 'node', args: ['tools.js'], env: [{ name: 'A', value: '1' }] },
      { type: 'http', name: 'web', url: 'https://mcp.example', headers: [{ name: 'authorization', value: 'x' }] },
    ])
    expect(noticesOf(result)).toEqual(['The program does not support MCP servers over sse: old is left out.'])
  })

  test('the system prompt is told ahead of the first message, once', async () => {
    const context = thread()
    const first = await ask('state', { systemPrompt: 'Be brief.', context })
    const second = await ask('state', { systemPrompt: 'Be brief.', context, after: first })
    expect(stateOf(first).text).toBe('<instructions>\nBe brief.\n</instructions>\nstate')
    expect(stateOf(second).text).toBe('state')
  })

  test('an image of the message is sent along', async () => {
    const url = 'data:image/png;base64,AAAA'
    const result = await playTurn({
      ...{ engine, environment: sandbox.environment },
      prompt: [
        { type: 'file', mediaType: 'image/png', url },
        { type: 'text', text: 'state' },
      ],
      context: { openModel: () => accessInside(model, 'anthropic'), options: { acp: { command: 'acp-agent' } } },
    })
    expect(stateOf(result).text).toBe('<image image/png>\nstate')
  })

  const wrong = [
    {
      name: 'no program',
      acp: {},
      told: /must name a preset \(opencode, codex, gemini, claude-agent-acp\)/,
    },
    { name: 'an unknown preset', acp: { preset: 'clod' }, told: /clod is unknown; the presets are opencode, codex/ },
    { name: 'a program that is not there', acp: { command: 'nobody' }, told: /^There is no nobody in this sandbox\.$/ },
    {
      name: 'a preset that is not installed',
      acp: { preset: 'opencode' },
      told: /There is no opencode in this sandbox\. Add this line to the agent's "setup": npm install -g .* opencode-ai@/,
    },
    {
      name: 'a model of another API',
      acp: { preset: 'codex' },
      told: /codex-acp needs a model whose API is openai-responses; fake\/fake-model is not one/,
    },
    {
      name: 'a program that speaks something else',
      acp: { command: 'cat', args: ['/etc/hostname'] },
      told: /^cat did not start: The program ended with exit code 0\.$/,
    },
  ]
  test.each(wrong)('$name is told', async ({ acp, told }) => {
    const { end, parts } = await ask('say hi', { acp: acp as AcpOptions })
    expect([end.status, parts]).toEqual(['failed', []])
    expect(end.error?.message).toMatch(told)
  })
})

describe('between the turns of a thread', () => {
  test('the process waits, and has the memory', async () => {
    const context = thread()
    const first = await ask('state', { context })
    const second = await ask('state', { context, after: first })
    const third = await ask('remember', { context, after: second })
    expect([stateOf(second).pid, third.text]).toEqual([stateOf(first).pid, '2'])
  })

  test('another one goes on with the session when the process was lost', async () => {
    const context = thread()
    const first = await ask('state', { context })
    await sandbox.shell(`kill -9 ${stateOf(first).pid}`)
    const second = await ask('state', { context, after: first })
    const third = await ask('remember', { context, after: second })
    expect(stateOf(second).pid).not.toBe(stateOf(first).pid)
    expect(stateOf(second).id).toBe(stateOf(first).id)
    expect(third.text).toBe('2')
    expect(noticesOf(second)).toEqual([])
  })

  test('a new session is told what was said when the old one is lost', async () => {
    const first = await ask('state')
    await sandbox.shell('rm /home/user/.acp-*')
    const second = await ask('state', { after: first })
    expect(stateOf(second).id).not.toBe(stateOf(first).id)
    expect(stateOf(second).text).toMatch(/^<conversation>.*User: state\n\nYou: {.*<\/conversation>\nstate$/s)
    expect(noticesOf(second)).toEqual([
      'The agent program no longer has its session. A new one starts with the conversation so far.',
    ])
  })

  test('a turn in which the process was lost is told again to the one that goes on', async () => {
    const first = await ask('say one')
    const second = await ask('die', { after: first })
    const third = await ask('state', { after: second })
    expect(stateOf(third).text).toBe(
      '<conversation>\nWhat was said in this conversation before:\n\nUser: die\n\nYou: \n</conversation>\nstate',
    )
    expect(stateOf(third).prompts.slice(0, 2)).toEqual(['say one', 'die'])
  })

  test('an answer that was taken back is not remembered', async () => {
    const first = await ask('say one')
    const second = await ask('say two', { after: first })
    const again = await ask('state', { after: { ...second, thread: first.thread } })
    expect(stateOf(again).prompts).toHaveLength(1)
    expect(stateOf(again).text).not.toContain('two')
  })

  test('other settings begin another process with the same session', async () => {
    const context = thread()
    const first = await ask('state', { context })
    const second = await ask('state', { context, after: first, acp: { command: 'acp-agent', mode: 'free' } })
    expect([stateOf(second).id, stateOf(second).mode]).toEqual([stateOf(first).id, 'free'])
    expect(stateOf(second).pid).not.toBe(stateOf(first).pid)
    expect(await sandbox.shell(`ls -d /proc/${stateOf(first).pid} 2>/dev/null`)).toBe('')
  })

  test('a cancelled turn is remembered, and nothing of it is alive', async () => {
    await engine.close?.()
    const abort = new AbortController()
    const context = thread()
    const first = await ask('slowly', {
      context: { ...context, signal: abort.signal },
      onEvent: ({ type }) => type === 'text' && abort.abort(),
    })
    expect([first.end.status, await sandbox.shell("pgrep -f '[a]cp-agent.mjs'")]).toEqual(['cancelled', ''])
    const second = await ask('state', { context, after: first })
    expect(stateOf(second).prompts[0]).toBe('slowly')
  })

  test('a program that does not hear its cancel is killed', async () => {
    const abort = new AbortController()
    const { end, text } = await ask('deaf', {
      context: { ...thread(), signal: abort.signal },
      onEvent: ({ type }) => type === 'text' && abort.abort(),
    })
    const pid = /\d+/.exec(text)?.[0]
    expect([end.status, await sandbox.shell(`ls -d /proc/${pid} 2>/dev/null`)]).toEqual(['cancelled', ''])
  })

  test('a program that stalls when a call that waits is left is not asked before it goes on', async () => {
    const permissions: Permissions = { decide: () => ({ decision: 'ask' }) }
    const context = { ...thread(), permissions }
    const first = await ask('calls-and-stalls [{"name":"Bash","input":{"command":"true"}}]', { context })
    const second = await ask('say Of course.', { context, after: first })
    expect([first.end, second.end]).toEqual([{ status: 'waiting' }, { status: 'completed' }])
    expect(second.text).toBe('Of course.')
  })

  test('no more than three processes wait in one sandbox, and none when the engine is closed', async () => {
    const turns: TurnResult[] = []
    for (let count = 0; count < 4; count++) turns.push(await ask('state', { context: thread() }))
    const alive = async () => (await sandbox.shell("pgrep -f '[a]cp-agent.mjs'")).trim()
    const pids = turns.map(turn => stateOf(turn).pid)
    await until(async () => (await alive()) === pids.slice(1).join('\n'))
    await engine.close?.()
    expect(await alive()).toBe('')
  })
})
