import { messageOf } from '../../../src/errors.ts'
import type { EngineEnd, EngineEvent, Environment, McpServer } from '../../../src/plugin-api/index.ts'
import { type JsonObject, objectOf, objectsOf } from '../../../src/read/json.ts'
import type { AnswerSink } from '../answer.ts'
import { OWN_SERVER, serveClientTools } from '../client-tools.ts'
import { type Conversation, failed } from '../conversation.ts'
import { SessionLost } from '../errors.ts'
import type { Program } from '../program.ts'
import type { PromptPart } from '../prompt.ts'
import { createPeer, type Peer, PeerError } from './peer.ts'
import { toOutcome, toProgramCall } from './permissions.ts'
import { openRelay } from './relay.ts'
import type { AcpSession } from './session.ts'
import { chooseSettings } from './settings.ts'
import { createUpdates, type Updates } from './updates.ts'

/** The version of the Agent Client Protocol. */
const PROTOCOL_VERSION = 1

/**
 * Begins a session, or resumes one. Throws SessionLost when the program does not have it. Over 100 lines: one state of the
 * session, with what the program asks and what it is asked.
 */
export async function openConversation(
  program: Program,
  environment: Environment,
  session: AcpSession,
  emit: (event: EngineEvent) => void,
): Promise<Conversation> {
  let current: { answer: AnswerSink; updates: Updates; denials: string[] } | undefined
  let sessionId = ''
  const { asks } = session
  const own = await openOwnServer(program, environment, session.clientTools, (call, reply) =>
    current ? current.answer.callClient(call, reply) : reply({ type: 'error', error: 'There is no turn.' }),
  )
  const mcpServers = { ...session.options.mcpServers, ...own }
  const servers = Object.keys(mcpServers)

  function decide(params: JsonObject, reply: (outcome: object) => void) {
    const asked = objectOf(params.toolCall) ?? {}
    const call = { ...current?.updates.getCall(asked.toolCallId), ...asked }
    const answerBy = (isAllowed: boolean) => reply(toOutcome(params.options, isAllowed, { always: !asks }))
    if (!current) return answerBy(false)
    const { answer, denials } = current
    const programCall = toProgramCall(call, servers)
    answer.ask(programCall, verdict => {
      // The protocol has no place for a reason: the program gets it afterwards.
      if (asks && verdict.type === 'denied') denials.push(`${programCall.name}: ${verdict.message}`)
      answerBy(verdict.type === 'allowed')
    })
  }

  const peer = createPeer(program, {
    request(method, params, reply) {
      if (method !== 'session/request_permission') return false
      decide(params, reply)
      return true
    },
    notification(method, params) {
      // Updates between answers repeat what is known, such as the history of a session that is loaded.
      if (method === 'session/update' && params.sessionId === sessionId)
        current?.updates.take(objectOf(params.update) ?? {})
    },
  })
  const started = await peer.call('initialize', {
    protocolVersion: PROTOCOL_VERSION,
    clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
    clientInfo: { name: 'threadbox', version: '1' },
  })
  const capabilities = objectOf(started.agentCapabilities) ?? {}
  const { authMethod: methodId } = session
  if (methodId !== undefined && objectsOf(started.authMethods).some(({ id }) => id === methodId)) {
    await peer.call('authenticate', { methodId })
  }
  const opened = await openSession(peer, { ...session, mcpServers }, capabilities, emit)
  sessionId = opened.sessionId
  await chooseSettings(peer, sessionId, opened.state, session, emit)
  const takesImages = objectOf(capabilities.promptCapabilities)?.image === true
  // The protocol has no system prompt: it precedes the first message of each process.
  let preface = session.systemPrompt

  let isInterrupted = false

  /** Programs end their answer at a call that was rejected, or take it for their own. So they are told why. */
  async function prompted(
    prompt: object[],
    { answer, updates, denials }: { answer: AnswerSink; updates: Updates; denials: string[] },
  ): Promise<EngineEnd> {
    const emit = (event: EngineEvent) => answer.emit(event)
    try {
      let result = await peer.call('session/prompt', { sessionId, prompt })
      while (denials.length > 0 && !isInterrupted) {
        const text = `Calls were not made:\n${denials.splice(0).join('\n')}\nGo on with this.`
        result = await peer.call('session/prompt', { sessionId, prompt: [{ type: 'text', text }] })
      }
      const end = toEngineEnd(result, emit)
      const { problem } = updates
      return end.status === 'completed' && problem !== undefined ? failed('agent_failed', problem) : end
    } catch (error) {
      return failed('agent_failed', messageOf(error))
    }
  }

  return {
    program,
    sessionId,
    announcesCalls: false,
    ask(prompt, answer) {
      const updates = createUpdates(event => answer.emit(event), {
        ...(session.namesTexts && { namesTexts: true }),
        servers,
      })
      const answering = { answer, updates, denials: [] }
      current = answering
      const instructions: PromptPart[] = preface
        ? [{ type: 'text', text: `<instructions>\n${preface}\n</instructions>` }]
        : []
      preface = undefined
      const parts = [...instructions, ...prompt].flatMap(part => toBlock(part, takesImages))
      isInterrupted = false
      void prompted(parts, answering).then(end => {
        if (current === answering) current = undefined
        answer.end(end)
      })
    },
    interrupt() {
      isInterrupted = true
      peer.notify('session/cancel', { sessionId })
    },
  }
}

/** The client's tools as a server that the program starts. It ends with the program. */
async function openOwnServer(
  program: Program,
  environment: Environment,
  tools: AcpSession['clientTools'],
  callClient: AnswerSink['callClient'],
): Promise<Record<string, McpServer>> {
  if (Object.keys(tools).length === 0) return {}
  const { command, close } = await openRelay(environment, (message, reply) =>
    serveClientTools(tools, message, callClient, reply),
  )
  void program.ended.then(close)
  const [name = '', ...args] = command
  return { [OWN_SERVER]: { type: 'stdio', command: name, args } }
}

async function openSession(
  peer: Peer,
  { cwd, mcpServers: servers, resume }: Pick<AcpSession, 'cwd' | 'resume'> & { mcpServers: Record<string, McpServer> },
  capabilities: JsonObject,
  emit: (event: EngineEvent) => void,
): Promise<{ sessionId: string; state: JsonObject }> {
  const mcpServers = toAcpServers(servers, objectOf(capabilities.mcpCapabilities) ?? {}, emit)
  if (resume === undefined) {
    const state = await peer.call('session/new', { cwd, mcpServers })
    if (typeof state.sessionId !== 'string') throw new Error('The program began a session but gave no id.')
    return { sessionId: state.sessionId, state }
  }
  const canResume = objectOf(capabilities.sessionCapabilities)?.resume != null
  if (!canResume && capabilities.loadSession !== true) throw new SessionLost('The program cannot resume sessions.')
  try {
    const state = await peer.call(canResume ? 'session/resume' : 'session/load', { sessionId: resume, cwd, mcpServers })
    return { sessionId: resume, state }
  } catch (error) {
    throw error instanceof PeerError ? new SessionLost(error.message) : error
  }
}

function toAcpServers(
  servers: Readonly<Record<string, McpServer>>,
  capabilities: JsonObject,
  emit: (event: EngineEvent) => void,
): object[] {
  return Object.entries(servers).flatMap<object>(([name, server]) => {
    if (server.type === 'stdio')
      return [{ name, command: server.command, args: server.args ?? [], env: pairs(server.env) }]
    if (capabilities[server.type] === true)
      return [{ type: server.type, name, url: server.url, headers: pairs(server.headers) }]
    const text = `The program does not support MCP servers over ${server.type}: ${name} is left out.`
    emit({ type: 'notice', level: 'warn', code: 'mcp_failed', text })
    return []
  })
}

const pairs = (record: Readonly<Record<string, string>> = {}) =>
  Object.entries(record).map(([name, value]) => ({ name, value }))

function toBlock(part: PromptPart, takesImages: boolean): object[] {
  if (part.type === 'text') return [part]
  return takesImages ? [{ type: 'image', mimeType: part.mediaType, data: part.data }] : []
}

function toEngineEnd({ stopReason }: JsonObject, emit: (event: EngineEvent) => void): EngineEnd {
  if (stopReason === 'cancelled') return { status: 'cancelled' }
  if (stopReason === 'max_turn_requests') {
    return failed('max_turns', 'The agent stopped: it reached the limit of model calls. Its work so far is kept.')
  }
  if (stopReason === 'refusal') return failed('model_refused', 'The model refused to answer.')
  if (stopReason === 'max_tokens') {
    const text = 'The answer was cut: it is longer than the model may write at once.'
    emit({ type: 'notice', level: 'warn', code: 'answer_cut', text })
  }
  return { status: 'completed' }
}
