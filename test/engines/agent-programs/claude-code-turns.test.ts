import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { claudeCode } from '../../../plugins/agent-programs/index.ts'
import type { EngineContext, TurnOptions } from '../../../src/plugin-api/index.ts'
import { accessInside, bringProgram, openAgentSandbox } from '../../support/agent-sandbox.ts'
import { type ModelTurn, startModelServer } from '../../support/model-server.ts'
import type { TestSandbox } from '../../support/sandbox.ts'
import { playTurn, type TurnResult } from '../../support/turn.ts'
import { engineOf } from '../engine-of.ts'
import { playTo } from './programs.ts'

const model = startModelServer()
const engine = engineOf(claudeCode)
let sandbox: TestSandbox
beforeAll(async () => {
  sandbox = await openAgentSandbox(model)
}, 60_000)
afterAll(async () => {
  await engine.close?.()
  await sandbox.close()
  await model.stop()
}, 60_000)

interface Asked {
  options?: TurnOptions
  systemPrompt?: string
  threadId?: string
  after?: TurnResult
  context?: Partial<EngineContext>
  onEvent?: (event: { type: string }) => void
}

function ask(prompt: string, { options = {}, systemPrompt, threadId, after, context, onEvent }: Asked = {}) {
  const session = after?.events.findLast(event => event.type === 'session')
  return playTurn({
    ...{ engine, environment: sandbox.environment, prompt },
    ...(after && { history: after.thread }),
    ...(onEvent && { onEvent }),
    turn: {
      ...(session?.type === 'session' && { engineSessionId: session.engineSessionId }),
      ...(systemPrompt !== undefined && { systemPrompt }),
    },
    context: {
      openModel: () => accessInside(model, 'anthropic'),
      options,
      ...(threadId !== undefined && { threadId }),
      ...context,
    },
  })
}

const bash = (command: string): ModelTurn => ({ calls: [{ name: 'Bash', input: { command } }] })
const noticesOf = ({ events }: TurnResult) => events.flatMap(event => (event.type === 'notice' ? [event.code] : []))
const lastRequest = () => JSON.stringify(model.requests.at(-1)?.body)

test('without the program, the turn tells the line that installs it', async () => {
  const { end } = await ask('Hi.')
  expect(end.error?.message).toMatch(
    /^There is no claude in this sandbox\. Add this line to the agent's "setup": npm install -g .* @anthropic-ai\/claude-code@[\d.]+$/,
  )
})

test('with a model of another API, the turn tells what it needs', async () => {
  const { end } = await ask('Hi.', { context: { openModel: () => accessInside(model, 'openai-chat') } })
  expect(end.error?.message).toBe("Claude Code needs a model of Anthropic's API; fake-model is not one.")
})

describe('with the program', () => {
  beforeAll(() => bringProgram(sandbox.environment, 'claude-code'), 60_000)

  test('what its sub-agent does is shown at the call that started it', async () => {
    const input = { description: 'Look', prompt: 'Look around.', subagent_type: 'general-purpose' }
    playTo(
      model,
      { calls: [{ name: 'Agent', input }] },
      bash('echo from-below'),
      { text: 'Below it says so.' },
      { text: 'All done.' },
    )
    const { end, parts, events } = await ask('Go.')
    expect([end.status, parts.map(({ type }) => type)]).toEqual(['completed', ['tool-Agent', 'step-start', 'text']])
    expect(JSON.stringify(parts[0]?.output)).toContain('Below it says so.')
    const shown = events.flatMap(event => (event.type === 'tool-progress' ? [event.data] : []))
    expect(shown).toContainEqual({ tool: 'Bash', input: { command: 'echo from-below' } })
  })

  test('in plan mode it changes nothing', async () => {
    const write: ModelTurn = { calls: [{ name: 'Write', input: { file_path: '/home/user/new', content: 'x' } }] }
    playTo(model, write, { text: 'I may not.' })
    const result = await ask('Go.', { options: { permissionMode: 'plan' } })
    expect(result.parts).toMatchObject([{ type: 'tool-Write', state: 'output-error' }, { text: 'I may not.' }])
    expect(noticesOf(result)).toContain('permission_denied')
    expect(await sandbox.shell('ls /home/user/new 2>/dev/null')).toBe('')
  })

  test('it lacks the tools that are taken away, and those that would outlive its answer', async () => {
    playTo(model, { text: 'Yes.' })
    await ask('Go.', { options: { disallowedTools: ['Write', 'Bash(rm:*)'] } })
    const tools = model.requests.at(-1)?.tools
    expect(tools).toContain('Bash')
    expect(tools?.filter(name => /^(Write|Monitor|Cron.*|ScheduleWakeup|AskUserQuestion)$/.test(name))).toEqual([])
  })

  test('rules that deny are its own too, for some inputs of a tool', async () => {
    const write: ModelTurn = { calls: [{ name: 'Write', input: { file_path: '/home/user/kept/a', content: 'x' } }] }
    playTo(model, bash('echo no > /home/user/made'), write, bash('echo yes'), { text: 'Done.' })
    const deny = ['Bash(echo no:*)', 'Edit(/home/user/kept/**)', 'WebFetch']
    const { parts } = await ask('Go.', { options: { deny } })
    expect(parts).toMatchObject([
      { type: 'tool-Bash', state: 'output-error' },
      { type: 'tool-Write', state: 'output-error' },
      { type: 'tool-Bash', state: 'output-available', output: 'yes' },
      { text: 'Done.' },
    ])
    expect(model.requests.at(-1)?.tools).not.toContain('WebFetch')
    expect(await sandbox.shell('ls /home/user/made /home/user/kept 2>/dev/null')).toBe('')
  })

  test('its bound of model calls ends the turn, and the next one has as many', async () => {
    const threadId = crypto.randomUUID()
    playTo(model, bash('echo 1'), bash('echo 2'), bash('echo 3'))
    const first = await ask('Go.', { options: { maxTurns: 2 }, threadId })
    expect([first.end.status, first.end.error?.code]).toEqual(['failed', 'max_turns'])
    expect(first.parts.map(({ type }) => type)).toEqual(['tool-Bash', 'tool-Bash', 'step-start'])
    playTo(model, bash('echo 4'), { text: 'Done.' })
    const second = await ask('Again.', { options: { maxTurns: 2 }, threadId, after: first })
    expect([second.end.status, second.text]).toEqual(['completed', 'Done.'])
  })

  test('the system prompt is added to its own', async () => {
    playTo(model, { text: 'Yes.' })
    await ask('Go.', { systemPrompt: 'Answer in verse.' })
    expect(JSON.stringify(model.requests.at(-1)?.body.system)).toContain('Answer in verse.')
  })

  test('tools of an MCP server in the sandbox are its own', async () => {
    const source = await Bun.file(new URL('../ai-sdk/mcp-server.py', import.meta.url)).bytes()
    await sandbox.environment.files.write('/home/user/mcp.py', source)
    const mcpServers = { 'user-tools': { type: 'stdio', command: 'python3', args: ['/home/user/mcp.py'] } } as const
    playTo(model, ({ tools, body }) => ({
      text: `${[...tools, JSON.stringify(body)].join().match(/mcp__user-tools__\w+/)}`,
    }))
    const { text } = await ask('Go.', { options: { mcpServers } as unknown as TurnOptions })
    expect(text).toMatch(/^mcp__user-tools__\w+$/)
  })

  test('settings of the sandbox are not read', async () => {
    const settings = {
      env: { ANTHROPIC_BASE_URL: 'http://127.0.0.1:9' },
      hooks: { UserPromptSubmit: [{ hooks: [{ type: 'command', command: 'touch /tmp/hooked' }] }] },
    }
    for (const path of ['/home/user/.claude/settings.json', '/home/user/.claude/settings.local.json'])
      await sandbox.environment.files.write(path, Buffer.from(JSON.stringify(settings)))
    playTo(model, { text: 'As ever.' })
    const { text } = await ask('Go.')
    expect([text, await sandbox.shell('ls /tmp/hooked 2>/dev/null')]).toEqual(['As ever.', ''])
  })

  test('a session that is lost is begun anew, with what was said', async () => {
    playTo(model, { text: 'Noted: plover.' })
    const first = await ask('Remember plover.')
    await sandbox.shell('rm -rf /home/user/.claude/projects')
    playTo(model, { text: 'Yes.' })
    const second = await ask('Which?', { after: first })
    expect([noticesOf(second), second.text]).toEqual([['session_lost'], 'Yes.'])
    expect(lastRequest()).toContain('You: Noted: plover.')
  })

  test('a text that is cancelled leaves the process to the next turn, which knows of it', async () => {
    const abort = new AbortController()
    const threadId = crypto.randomUUID()
    const pid = () => sandbox.shell("pgrep -fo '[c]laude -p'")
    playTo(model, { text: 'word '.repeat(200), everyMs: 20 })
    const first = await ask('Tell of plovers.', {
      ...{ threadId, context: { signal: abort.signal } },
      onEvent: ({ type }) => type === 'text' && abort.abort(),
    })
    const before = await pid()
    playTo(model, ({ body }) => ({ text: `${JSON.stringify(body).includes('Tell of plovers.')}` }))
    const second = await ask('Go on.', { threadId, after: first })
    expect([first.end.status, second.text, await pid()]).toEqual(['cancelled', 'true', before])
    expect(before).not.toBe('')
  })

  test('a model that is overloaded is asked again, and that is told', async () => {
    playTo(model, { status: 529, message: 'busy' }, { text: 'Here.' })
    const result = await ask('Go.')
    expect([result.text, noticesOf(result)]).toEqual(['Here.', ['model_retry']])
  })
})
