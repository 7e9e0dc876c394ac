import type { ClientTool, EngineEnd } from '../../../src/plugin-api/index.ts'
import { type JsonObject, objectOf } from '../../../src/read/json.ts'
import type { AnswerSink } from '../answer.ts'
import { OWN_SERVER, serveClientTools } from '../client-tools.ts'
import { type Conversation, failed } from '../conversation.ts'
import type { Program } from '../program.ts'
import type { Verdict } from '../program-call.ts'
import type { PromptPart } from '../prompt.ts'
import { createReader, type Reader } from './reader.ts'
import { createSteered } from './steered.ts'

export interface ClaudeConversation extends Conversation {
  /** Resolves when the program accepts messages: to undefined, or to the reason why it does not. */
  ready: Promise<string | undefined>
}

/** How long after an answer the program may need to begin another with what it was given meanwhile. */
const BEGIN_MS = 5000

export interface ConversationInit {
  sessionId: string
  /** The program asks before each call. */
  asks: boolean
  isPlanMode: boolean
  clientTools: Readonly<Record<string, ClientTool>>
}

/** The answer that the program gives now. */
interface Current {
  answer: AnswerSink
  reader: Reader
  take(message: JsonObject): void
  end(end: EngineEnd): void
}

/** The id of the first control request. */
const INITIALIZE = 'initialize'
/** The program calls this before each call of a tool, whatever its own rules say. */
const BEFORE_CALL = 'before-call'

/** Over 100 lines: one state of the program's stream, with a case for each kind of request in both directions. */
export function createConversation(
  program: Program,
  { sessionId, asks, isPlanMode, clientTools }: ConversationInit,
): ClaudeConversation {
  const ready = Promise.withResolvers<string | undefined>()
  let current: Current | undefined
  let requests = 0
  const steered = createSteered()

  const request = (subtype: string, fields: object = {}, id = `${subtype}-${++requests}`) =>
    program.send({ type: 'control_request', request_id: id, request: { subtype, ...fields } })
  const respond = (id: unknown, response: object) =>
    program.send({ type: 'control_response', response: { subtype: 'success', request_id: id, response } })

  function takeRequest(id: unknown, asked: JsonObject) {
    const { subtype, tool_use_id: callId, tool_name: name, input } = asked
    const answer = current?.answer
    if (subtype === 'hook_callback') {
      const { tool_name, tool_input } = objectOf(input) ?? {}
      const call = { callId: String(callId), name: String(tool_name), input: tool_input }
      const isFree = answer?.isFree(call) === true
      // In plan mode the program's own rules come after ours.
      return respond(id, isFree && isPlanMode ? {} : beforeCall(isFree ? 'allow' : 'ask'))
    }
    if (subtype === 'can_use_tool') {
      const call = { callId: String(callId), name: String(name), input }
      if (!answer) return respond(id, toPermission({ type: 'denied', message: 'There is no turn.' }, input))
      if (isPlanMode && answer.isFree(call)) {
        return respond(
          id,
          toPermission({ type: 'denied', message: `${call.name} is not allowed in plan mode.` }, input),
        )
      }
      if (typeof asked.agent_id === 'string') current?.reader.adopt(call.callId)
      return answer.ask(call, verdict => respond(id, toPermission(verdict, input)))
    }
    if (subtype === 'mcp_message') {
      const message = objectOf(asked.message) ?? {}
      if (message.id === undefined) return respond(id, { mcp_response: { jsonrpc: '2.0', id: 0, result: {} } })
      const callClient: AnswerSink['callClient'] = (call, reply) =>
        answer ? answer.callClient(call, reply) : reply({ type: 'error', error: 'There is no turn.' })
      return serveClientTools(clientTools, message, callClient, reply => respond(id, { mcp_response: reply }))
    }
    program.send({
      type: 'control_response',
      response: { subtype: 'error', request_id: id, error: `There is no ${String(subtype)}.` },
    })
  }

  program.onMessage = message => {
    if (message.type === 'control_request') return takeRequest(message.request_id, objectOf(message.request) ?? {})
    const response = message.type === 'control_response' ? objectOf(message.response) : undefined
    if (response?.request_id === INITIALIZE) {
      ready.resolve(response.subtype === 'success' ? undefined : String(response.error))
    }
    current?.take(message)
  }
  void program.ended.then(reason => {
    ready.resolve(reason)
    current?.end(failed('agent_failed', `Claude Code ended before its answer did. ${reason}`))
  })
  const hasClientTools = Object.keys(clientTools).length > 0
  request(
    'initialize',
    {
      ...(asks && { hooks: { PreToolUse: [{ matcher: null, hookCallbackIds: [BEFORE_CALL] }] } }),
      ...(hasClientTools && { sdkMcpServers: [OWN_SERVER] }),
    },
    INITIALIZE,
  )

  return {
    program,
    sessionId,
    announcesCalls: true,
    ready: ready.promise,
    ask(prompt, answer) {
      if (!program.isAlive) return answer.end(failed('agent_failed', 'Claude Code is not running.'))
      const reader = createReader(answer)
      let last: EngineEnd | undefined
      let late: ReturnType<typeof setTimeout> | undefined
      current = {
        answer,
        reader,
        take(message) {
          clearTimeout(late)
          const messageId = steered.read(message)
          if (messageId !== undefined) answer.emit({ type: 'steered', messageId })
          const end = reader.read(message)
          if (end && (end.status !== 'completed' || !steered.isWaiting)) return this.end(end)
          last = end ?? last
          // It answers what came too late for this answer in another one, by itself.
          if (last && steered.isWaiting) late = setTimeout(end => this.end(end), BEGIN_MS, last)
        },
        end(end) {
          clearTimeout(late)
          if (current === this) current = undefined
          answer.end(end)
        },
      }
      program.send(toUserMessage(prompt))
    },
    steer: (messageId, prompt) => program.send({ ...toUserMessage(prompt), uuid: steered.add(messageId) }),
    get hasUntaken() {
      return steered.isWaiting
    },
    interrupt: () => request('interrupt'),
  }
}

const toUserMessage = (prompt: readonly PromptPart[]) => ({
  type: 'user',
  message: { role: 'user', content: prompt.map(toBlock) },
})

const beforeCall = (permissionDecision: 'allow' | 'ask') => ({
  hookSpecificOutput: {
    hookEventName: 'PreToolUse',
    permissionDecision,
    permissionDecisionReason: 'The rules say so.',
  },
})

const toPermission = (verdict: Verdict, input: unknown): object =>
  verdict.type === 'denied'
    ? { behavior: 'deny', message: verdict.message }
    : { behavior: 'allow', updatedInput: input }

const toBlock = (part: PromptPart) =>
  part.type === 'text'
    ? part
    : { type: 'image', source: { type: 'base64', media_type: part.mediaType, data: part.data } }
