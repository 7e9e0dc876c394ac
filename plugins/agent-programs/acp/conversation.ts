import { messageOf } from '../../../src/errors.ts'
import type { EngineEnd, EngineEvent, McpServer } from '../../../src/plugin-api/index.ts'
import { type JsonObject, objectOf, objectsOf } from '../../../src/read/json.ts'
import { type Conversation, failed } from '../conversation.ts'
import { SessionLost } from '../errors.ts'
import type { Program } from '../program.ts'
import type { PromptPart } from '../prompt.ts'
import { createPeer, type Peer, PeerError } from './peer.ts'
import { answerPermission } from './permissions.ts'
import type { AcpSession } from './session.ts'
import { chooseSettings } from './settings.ts'
import { createUpdates, type Updates } from './updates.ts'

/** The version of the Agent Client Protocol. */
const PROTOCOL_VERSION = 1

/** Begins a session, or resumes one. Throws SessionLost when the program does not have it. */
export async function openConversation(
  program: Program,
  session: AcpSession,
  emit: (event: EngineEvent) => void,
): Promise<Conversation> {
  let updates: Updates | undefined
  let { permissions } = session
  const servers = Object.keys(session.options.mcpServers ?? {})
  let sessionId = ''
  const peer = createPeer(program, {
    request(method, params) {
      if (method !== 'session/request_permission') return undefined
      const known = updates?.getCall(objectOf(params.toolCall)?.toolCallId) ?? {}
      return answerPermission(params, known, { permissions, servers })
    },
    notification(method, params) {
      // Updates between answers repeat what is known, such as the history of a session that is loaded.
      if (method === 'session/update' && params.sessionId === sessionId) updates?.take(objectOf(params.update) ?? {})
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
  const opened = await openSession(peer, session, capabilities, emit)
  sessionId = opened.sessionId
  await chooseSettings(peer, sessionId, opened.state, session, emit)
  const takesImages = objectOf(capabilities.promptCapabilities)?.image === true
  // The protocol has no system prompt: it precedes the first message of each process.
  let preface = session.systemPrompt

  return {
    program,
    sessionId,
    announcesCalls: false,
    async ask(prompt, emitAnswer, context) {
      permissions = context.permissions
      const answer = createUpdates(emitAnswer, { ...(session.namesTexts && { namesTexts: true }), servers })
      updates = answer
      const instructions: PromptPart[] = preface
        ? [{ type: 'text', text: `<instructions>\n${preface}\n</instructions>` }]
        : []
      preface = undefined
      const parts = [...instructions, ...prompt].flatMap(part => toBlock(part, takesImages))
      try {
        const end = toEngineEnd(await peer.call('session/prompt', { sessionId, prompt: parts }), emitAnswer)
        return end.status === 'completed' && answer.problem !== undefined ? failed('agent_failed', answer.problem) : end
      } catch (error) {
        return failed('agent_failed', messageOf(error))
      } finally {
        if (updates === answer) updates = undefined
      }
    },
    interrupt: () => peer.notify('session/cancel', { sessionId }),
  }
}

async function openSession(
  peer: Peer,
  { cwd, options, resume }: AcpSession,
  capabilities: JsonObject,
  emit: (event: EngineEvent) => void,
): Promise<{ sessionId: string; state: JsonObject }> {
  const mcpServers = toAcpServers(options.mcpServers ?? {}, objectOf(capabilities.mcpCapabilities) ?? {}, emit)
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
