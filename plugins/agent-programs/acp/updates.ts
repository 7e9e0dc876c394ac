import type { EngineEvent } from '../../../src/plugin-api/index.ts'
import { type JsonObject, objectOf, objectsOf } from '../../../src/read/json.ts'
import { readToolInput, readToolName, readToolOutput } from './tools.ts'

/** Converts the session updates of one answer to events. */
export interface Updates {
  take(update: JsonObject): void
  /** Why the answer has failed, when the program reports it in an update and not by its end. */
  readonly problem: string | undefined
  /** What the updates so far reported of a tool call. */
  getCall(id: unknown): JsonObject
}

interface UpdatesOptions {
  /** Texts of its model have an id. A text without one is a warning of the program itself. */
  namesTexts?: true
  /** The names of the session's MCP servers. */
  servers?: readonly string[]
}

export function createUpdates(
  emit: (event: EngineEvent) => void,
  { namesTexts, servers = [] }: UpdatesOptions = {},
): Updates {
  const calls = new Map<string, JsonObject>()
  const called = new Set<string>()
  const ended = new Set<string>()
  let open: { kind: 'text' | 'reasoning'; id: string } | undefined
  let parts = 0
  let lastPlan = ''
  let lastWarning: string | undefined
  let hasFailed = false

  function takeText(kind: 'text' | 'reasoning', { content, messageId }: JsonObject): void {
    const { type, text } = objectOf(content) ?? {}
    if (type !== 'text' || typeof text !== 'string' || text === '') return
    if (namesTexts && kind === 'text' && messageId === undefined) {
      lastWarning = text.trim()
      emit({ type: 'notice', level: 'warn', code: 'program_warning', text: lastWarning })
      return
    }
    const id = `${kind}-${typeof messageId === 'string' ? messageId : parts}`
    if (open && open.id !== id) closePart()
    open = { kind, id }
    emit({ type: kind, id, delta: text })
  }

  function closePart(): void {
    if (open) emit({ type: 'part-end', id: open.id })
    open = undefined
    parts += 1
  }

  /** Programs announce a call first and its input later: the call is shown once its input is known, or it runs. */
  function takeCall(update: JsonObject): void {
    const callId = String(update.toolCallId)
    const known = calls.get(callId)
    const call = mergeUpdate(known, update)
    calls.set(callId, call)
    const { status = 'pending' } = call
    const hasInput = Object.keys(objectOf(call.rawInput) ?? {}).length > 0
    const isOver = status === 'completed' || status === 'failed'
    // Gemini never sends an input: the title describes the call.
    const isKnown = hasInput ? known || status !== 'pending' : call.rawInput === undefined && status === 'in_progress'
    if (!called.has(callId) && (isOver || isKnown)) {
      closePart()
      called.add(callId)
      emit({ type: 'tool-call', callId, name: readToolName(call, servers), input: readToolInput(call) })
    }
    if (!isOver || ended.has(callId)) return
    ended.add(callId)
    const output = readToolOutput(call)
    const error = status === 'failed' ? { error: (typeof output === 'string' && output) || 'The tool failed.' } : {}
    emit({ type: 'tool-result', callId, output, ...error })
  }

  /** Shows a plan as Claude's to-do list. */
  function takePlan(entries: unknown): void {
    const todos = objectsOf(entries).map(({ content, status }) => ({
      content: String(content),
      status: String(status),
      activeForm: String(content),
    }))
    const plan = JSON.stringify(todos)
    if (plan === lastPlan) return
    lastPlan = plan
    closePart()
    const callId = `plan-${crypto.randomUUID()}`
    emit({ type: 'tool-call', callId, name: 'TodoWrite', input: { todos } })
    emit({ type: 'tool-result', callId, output: 'The plan is noted.' })
  }

  return {
    take(update) {
      switch (update.sessionUpdate) {
        case 'agent_message_chunk':
          return takeText('text', update)
        case 'agent_thought_chunk':
          return takeText('reasoning', update)
        case 'tool_call':
        case 'tool_call_update':
          return takeCall(update)
        case 'plan':
          return takePlan(update.entries)
        case 'session_info_update':
          // Codex ends a failed answer like a completed one, and reports the failure only here.
          if (objectOf(objectOf(objectOf(update._meta)?.codex)?.threadStatus)?.type === 'systemError') hasFailed = true
      }
    },
    get problem() {
      return hasFailed ? (lastWarning ?? 'The program reports an error.') : undefined
    },
    getCall: id => calls.get(String(id)) ?? {},
  }
}

/** An update has only the fields that changed. Codex sends a command's output in pieces, as an extension of the protocol. */
function mergeUpdate(call: JsonObject = {}, update: JsonObject): JsonObject {
  const changed = Object.entries(update).filter(([, value]) => value !== undefined && value !== null)
  const printed = objectOf(objectOf(update._meta)?.terminal_output_delta)?.data
  return {
    ...call,
    ...Object.fromEntries(changed),
    _meta: { ...objectOf(call._meta), ...objectOf(update._meta) },
    printed: `${call.printed ?? ''}${typeof printed === 'string' ? printed : ''}`,
  }
}
