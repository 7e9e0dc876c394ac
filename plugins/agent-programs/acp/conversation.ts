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

/** Begins a session, or goes on with one. Throws SessionLost when the program does not have it. */
export async function openConversation(
  program: Program,
  session: AcpSession,
  tell: (event: EngineEvent) => void,
): Promise<Conversation> {
  let updates: Updates | undefined
  let sessionId = ''
  const peer = createPeer(program, {
    request(method, params) {
      if (method !== 'session/request_permission') return undefined
      const known = updates?.callOf(objectOf(params.toolCall)?.toolCallId) ?? {}
      return answerPermission(params, known, session.options)
    },
    notification(method, params) {
      // What comes between answers, as a session's history when it is loaded, is known already.
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
  const opened = await openSession(peer, session, capabilities, tell)
  sessionId = opened.sessionId
  await chooseSettings(peer, sessionId, opened.state, session, tell)
  const servers = Object.keys(session.options.mcpServers ?? {})
  const takesImages = objectOf(capabilities.promptCapabilities)?.image === true
  // No part of the protocol: told ahead of the first message, and again when the process is another.
  let preface = session.systemPrompt

  return {
    program,
    sessionId,
    tellsCallsFirst: false,
    async ask(prompt, say) {
      const answer = createUpdates(say, { ...(session.namesTexts && { namesTexts: true }), servers })
      updates = answer
      const instructions: PromptPart[] = preface
        ? [{ type: 'text', text: `<instructions>\n${preface}\n</instructions>` }]
        : []
      preface = undefined
      const parts = [...instructions, ...prompt].flatMap(part => toBlock(part, takesImages))
      try {
        const end = endOf(await peer.call('session/prompt', { sessionId, prompt: parts }), say)
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
  tell: (event: EngineEvent) => void,
): Promise<{ sessionId: string; state: JsonObject }> {
  const mcpServers = serversOf(options.mcpServers ?? {}, objectOf(capabilities.mcpCapabilities) ?? {}, tell)
  if (resume === undefined) {
    const state = await peer.call('session/new', { cwd, mcpServers })
    if (typeof state.sessionId !== 'string') throw new Error('The program began a session without an id.')
    return { sessionId: state.sessionId, state }
  }
  const canResume = objectOf(capabilities.sessionCapabilities)?.resume != null
  if (!canResume && capabilities.loadSession !== true) throw new SessionLost('The program keeps no sessions.')
  try {
    const state = await peer.call(canResume ? 'session/resume' : 'session/load', { sessionId: resume, cwd, mcpServers })
    return { sessionId: resume, state }
  } catch (error) {
    throw error instanceof PeerError ? new SessionLost(error.message) : error
  }
}

function serversOf(
  servers: Readonly<Record<string, McpServer>>,
  capabilities: JsonObject,
  tell: (event: EngineEvent) => void,
): object[] {
  return Object.entries(servers).flatMap<object>(([name, server]) => {
    if (server.type === 'stdio')
      return [{ name, command: server.command, args: server.args ?? [], env: pairs(server.env) }]
    if (capabilities[server.type] === true)
      return [{ type: server.type, name, url: server.url, headers: pairs(server.headers) }]
    const text = `The program takes no MCP server over ${server.type}: ${name} is left out.`
    tell({ type: 'notice', level: 'warn', code: 'mcp_failed', text })
    return []
  })
}

const pairs = (record: Readonly<Record<string, string>> = {}) =>
  Object.entries(record).map(([name, value]) => ({ name, value }))

function toBlock(part: PromptPart, takesImages: boolean): object[] {
  if (part.type === 'text') return [part]
  return takesImages ? [{ type: 'image', mimeType: part.mediaType, data: part.data }] : []
}

function endOf({ stopReason }: JsonObject, tell: (event: EngineEvent) => void): EngineEnd {
  if (stopReason === 'cancelled') return { status: 'cancelled' }
  if (stopReason === 'max_turn_requests') {
    return failed('max_turns', 'The agent stopped at its bound of model calls. What it did so far is kept.')
  }
  if (stopReason === 'refusal') return failed('model_refused', 'The model refused to answer.')
  if (stopReason === 'max_tokens') {
    const text = 'The answer was cut: it is longer than the model may write at once.'
    tell({ type: 'notice', level: 'warn', code: 'answer_cut', text })
  }
  return { status: 'completed' }
}
