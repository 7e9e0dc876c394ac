import { spawn, spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { Readable } from 'node:stream'

/**
 * An Agent Client Protocol program that does what the last line of the prompt says. It is transpiled and run in the
 * sandbox, by node alone. Its sessions are files: another process can load them.
 */
interface Session {
  id: string
  cwd: string
  /** What the user sent, all of it. */
  prompts: string[]
  mode: string
  effort: string
  servers: string[]
}

const sessions = new Map<string, Session>()
const waiting = new Map<number, (result: any) => void>()
let requests = 0
let stop = () => {}
let isStopped = false
let isBusy = false

const write = (message: object) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const pathOf = (id: string) => `${process.env.HOME}/.acp-${id}.json`
const save = (session: Session) => writeFileSync(pathOf(session.id), JSON.stringify(session))
const update = (sessionId: string, sessionUpdate: string, fields: object) =>
  write({ method: 'session/update', params: { sessionId, update: { sessionUpdate, ...fields } } })
const say = (sessionId: string, text: string, kind = 'agent_message_chunk') =>
  update(sessionId, kind, { content: { type: 'text', text } })
const request = (method: string, params: object) =>
  new Promise<any>(resolve => {
    waiting.set(++requests, resolve)
    write({ id: requests, method, params })
  })

const stateOf = ({ mode, effort }: Session) => ({
  modes: {
    currentModeId: mode,
    availableModes: [
      { id: 'ask', name: 'Always ask' },
      { id: 'plan', name: 'Plan' },
      { id: 'free', name: 'Do as you like' },
    ],
  },
  configOptions: [
    {
      ...{ id: 'effort', name: 'Thinking effort', type: 'select', currentValue: effort },
      options: [
        { value: 'low', name: 'Little' },
        { value: 'high', name: 'A lot' },
      ],
    },
  ],
})

async function answer(method: string, params: any): Promise<object> {
  switch (method) {
    case 'initialize':
      return {
        protocolVersion: 1,
        agentCapabilities: { loadSession: true, mcpCapabilities: { http: true }, promptCapabilities: { image: true } },
        authMethods: [],
      }
    case 'session/new': {
      const id = randomUUID()
      const servers = params.mcpServers.map((server: any) => JSON.stringify(server))
      const session = { id, cwd: params.cwd, prompts: [], mode: 'ask', effort: 'low', servers }
      sessions.set(id, session)
      save(session)
      return { sessionId: id, ...stateOf(session) }
    }
    case 'session/load': {
      if (!existsSync(pathOf(params.sessionId))) throw new Error('no such session')
      const session: Session = JSON.parse(readFileSync(pathOf(params.sessionId), 'utf8'))
      sessions.set(session.id, session)
      for (const text of session.prompts) {
        update(session.id, 'user_message_chunk', { content: { type: 'text', text } })
        say(session.id, 'said before')
      }
      return stateOf(session)
    }
    case 'session/set_mode':
      sessionOf(params).mode = params.modeId
      return {}
    case 'session/set_config_option':
      sessionOf(params).effort = params.value
      return {}
    case 'session/prompt':
      // Real programs do the same.
      if (isBusy) throw new Error('another prompt is being answered')
      isBusy = true
      try {
        return await prompt(sessionOf(params), params.prompt)
      } finally {
        isBusy = false
      }
    default:
      throw new Error(`no ${method}`)
  }
}

const sessionOf = ({ sessionId }: any): Session => {
  const session = sessions.get(sessionId)
  if (!session) throw new Error('no such session')
  return session
}

async function prompt(session: Session, blocks: any[]): Promise<object> {
  const { id } = session
  const text = blocks.map(block => block.text ?? `<${block.type} ${block.mimeType}>`).join('\n')
  const [, word = '', rest = ''] = /(?:^|\n)([\w-]+) ?([^\n]*)$/.exec(text) ?? []
  isStopped = false
  session.prompts.push(text)
  save(session)
  switch (word) {
    case 'say':
      say(id, rest.slice(0, 3))
      say(id, rest.slice(3))
      break
    case 'think':
      say(id, rest, 'agent_thought_chunk')
      say(id, 'So.')
      break
    case 'run':
      await run(id, rest)
      break
    case 'slowly':
      for (let word = 0; word < 200 && !isStopped; word++) {
        say(id, `w${word} `)
        await new Promise(resolve => setTimeout(resolve, 50))
      }
      break
    case 'remember': {
      const users = session.prompts.join('\n').match(/^User: /gm) ?? []
      say(id, `${session.prompts.length - 1 + users.length}`)
      break
    }
    case 'model':
      await askModel(id, text)
      break
    case 'plan':
      for (const status of ['pending', 'in_progress', 'in_progress', 'completed']) {
        update(id, 'plan', { entries: [{ content: 'Look around', priority: 'high', status }] })
      }
      break
    case 'ask': {
      const toolCall = { toolCallId: 'asked', title: 'Write a file', kind: rest, rawInput: { path: '/tmp/x' } }
      update(id, 'tool_call', { ...toolCall, status: 'pending' })
      const options = ['allow_always', 'allow_once', 'reject_once'].map(kind => ({ kind, optionId: kind, name: kind }))
      const { outcome } = await request('session/request_permission', { sessionId: id, toolCall, options })
      update(id, 'tool_call_update', {
        toolCallId: 'asked',
        status: 'completed',
        rawOutput: outcome.optionId ?? 'none',
      })
      break
    }
    case 'calls':
      await makeCalls(session, JSON.parse(rest))
      break
    case 'calls-and-stalls':
      await makeCalls(session, JSON.parse(rest), 400)
      break
    case 'Make':
      // The calls that were approved, by the lines that tell so.
      await makeCalls(
        session,
        [...text.matchAll(/^- (\w+) (.*): approved\.$/gm)].map(([, name, input = '']) => ({
          name,
          input: JSON.parse(input),
        })),
      )
      break
    case 'Go':
      say(id, text)
      break
    case 'refuse':
      return { stopReason: 'refusal' }
    case 'fail':
      if (rest) say(id, rest)
      throw new Error('it went wrong')
    case 'die':
      process.stderr.write('last words')
      process.exit(3)
      break
    case 'state':
      say(id, JSON.stringify({ pid: process.pid, text, ...session, env: process.env }))
      break
    case 'deaf':
      say(id, `I do not listen, says ${process.pid}.`)
      await new Promise(() => {})
  }
  return { stopReason: isStopped ? 'cancelled' : 'end_turn' }
}

/** Asks before each call, makes the allowed calls one after the other, and reports their results. Stalls after each decision. */
async function makeCalls(session: Session, calls: any[], stallMs = 0): Promise<void> {
  const outputs: string[] = []
  for (const { name, input } of calls) {
    if (isStopped) return
    const toolCallId = randomUUID()
    const isShell = name === 'Bash'
    const title = isShell ? 'Terminal' : `mcp__client-tools__${name}`
    const toolCall = { toolCallId, title, kind: isShell ? 'execute' : 'other', rawInput: input }
    update(session.id, 'tool_call', { ...toolCall, status: 'pending' })
    if (isShell) {
      const options = ['allow_always', 'allow_once', 'reject_once'].map(kind => ({ kind, optionId: kind, name: kind }))
      const { outcome } = await request('session/request_permission', { sessionId: session.id, toolCall, options })
      if (stallMs > 0) await new Promise(resolve => setTimeout(resolve, stallMs))
      if (outcome.optionId !== 'allow_once') {
        update(session.id, 'tool_call_update', { toolCallId, status: 'failed', rawOutput: 'It was rejected.' })
        continue
      }
    } else update(session.id, 'tool_call_update', { ...toolCall, status: 'in_progress' })
    const rawOutput = isShell
      ? spawnSync('sh', ['-c', input.command]).stdout.toString()
      : await callServer(session, name, input)
    update(session.id, 'tool_call_update', { toolCallId, status: 'completed', rawOutput })
    outputs.push(rawOutput)
  }
  if (!isStopped && outputs.length > 0) say(session.id, outputs.join('\n'))
}

/** Calls a tool of the first MCP server, which is started for it. */
async function callServer({ servers }: Session, name: string, input: object): Promise<string> {
  const { command, args } = JSON.parse(servers[0] ?? '{}')
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const ask = async (message: object) => {
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, ...message })}\n`)
    return JSON.parse(String((await answers.next()).value)).result
  }
  await ask({ method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: {} } })
  const { tools } = await ask({ method: 'tools/list' })
  if (!tools.some((tool: any) => tool.name === name)) throw new Error(`no ${name}`)
  const { content } = await ask({ method: 'tools/call', params: { name, arguments: input } })
  child.stdin.end()
  return content[0].text
}

/** A shell command as a tool call: told of first, its input later, as real programs do. */
async function run(sessionId: string, command: string): Promise<void> {
  const toolCallId = randomUUID()
  update(sessionId, 'tool_call', { toolCallId, title: 'Terminal', kind: 'execute', status: 'pending', rawInput: {} })
  update(sessionId, 'tool_call_update', { toolCallId, status: 'in_progress', rawInput: { command } })
  const child = spawn('sh', ['-c', command], { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  child.stdout.on('data', data => {
    output += data
  })
  stop = () => child.kill()
  const code = await new Promise(resolve => child.on('close', resolve))
  const status = code === 0 ? 'completed' : 'failed'
  update(sessionId, 'tool_call_update', { toolCallId, status, rawOutput: output, content: [] })
}

/** Says what the model says, over Anthropic's API. */
async function askModel(sessionId: string, text: string): Promise<void> {
  const abort = new AbortController()
  stop = () => abort.abort()
  try {
    const response = await fetch(`${process.env.THREADBOX_MODEL_URL}/messages`, {
      method: 'POST',
      headers: { 'x-api-key': process.env.THREADBOX_MODEL_TOKEN ?? '', 'content-type': 'application/json' },
      body: JSON.stringify({
        ...{ model: 'a-small-model', stream: true, max_tokens: 100 },
        messages: [{ role: 'user', content: text }],
      }),
      signal: abort.signal,
    })
    if (!response.ok) throw new Error(`the model answered ${response.status} ${await response.text()}`)
    for await (const line of createInterface({ input: Readable.fromWeb(response.body as any) })) {
      const delta = line.startsWith('data: ') ? JSON.parse(line.slice(6)).delta?.text : undefined
      if (delta) say(sessionId, delta)
    }
  } catch (error) {
    if (!isStopped) throw error
  }
}

createInterface({ input: process.stdin }).on('line', async line => {
  const { id, method, params, result } = JSON.parse(line)
  if (method === 'session/cancel') {
    isStopped = true
    stop()
  } else if (method) {
    try {
      write({ id, result: await answer(method, params) })
    } catch (error) {
      write({ id, error: { code: -32000, message: (error as Error).message } })
    }
  } else {
    waiting.get(id)?.(result)
    waiting.delete(id)
  }
})
// The end of its input is the end of a program.
process.stdin.on('end', () => process.exit(0))
