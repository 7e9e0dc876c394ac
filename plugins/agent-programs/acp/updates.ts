import type { EngineEvent } from '../../../src/plugin-api/index.ts'
import { type JsonObject, objectOf, objectsOf } from '../../../src/read/json.ts'
import { toolInputOf, toolNameOf, toolOutputOf } from './tools.ts'

/** Makes events of the session updates of one answer. */
export interface Updates {
  take(update: JsonObject): void
  /** Why the answer has failed, if the program says so beside its end. */
  readonly problem: string | undefined
  /** What was told of a tool call so far. */
  callOf(id: unknown): JsonObject
}

interface UpdatesOptions {
  /** Texts of its model have an id: one without is the program's own warning. */
  namesTexts?: true
  /** The names of its MCP servers. */
  servers?: readonly string[]
}

export function createUpdates(
  tell: (event: EngineEvent) => void,
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

  function say(kind: 'text' | 'reasoning', { content, messageId }: JsonObject): void {
    const { type, text } = objectOf(content) ?? {}
    if (type !== 'text' || typeof text !== 'string' || text === '') return
    if (namesTexts && kind === 'text' && messageId === undefined) {
      lastWarning = text.trim()
      tell({ type: 'notice', level: 'warn', code: 'program_warning', text: lastWarning })
      return
    }
    const id = `${kind}-${typeof messageId === 'string' ? messageId : parts}`
    if (open && open.id !== id) closePart()
    open = { kind, id }
    tell({ type: kind, id, delta: text })
  }

  function closePart(): void {
    if (open) tell({ type: 'part-end', id: open.id })
    open = undefined
    parts += 1
  }

  /** Programs tell of a call first and of its input later: it is shown when its input is known, or it runs. */
  function takeCall(update: JsonObject): void {
    const callId = String(update.toolCallId)
    const known = calls.get(callId)
    const call = merged(known, update)
    calls.set(callId, call)
    const { status = 'pending' } = call
    const hasInput = Object.keys(objectOf(call.rawInput) ?? {}).length > 0
    const isOver = status === 'completed' || status === 'failed'
    // Gemini tells no input: what it is about to do is in the title.
    const isKnown = hasInput ? known || status !== 'pending' : call.rawInput === undefined && status === 'in_progress'
    if (!called.has(callId) && (isOver || isKnown)) {
      closePart()
      called.add(callId)
      tell({ type: 'tool-call', callId, name: toolNameOf(call, servers), input: toolInputOf(call) })
    }
    if (!isOver || ended.has(callId)) return
    ended.add(callId)
    const output = toolOutputOf(call)
    const error = status === 'failed' ? { error: (typeof output === 'string' && output) || 'The tool failed.' } : {}
    tell({ type: 'tool-result', callId, output, ...error })
  }

  /** Shown as Claude's list of what is to do. */
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
    tell({ type: 'tool-call', callId, name: 'TodoWrite', input: { todos } })
    tell({ type: 'tool-result', callId, output: 'The plan is noted.' })
  }

  return {
    take(update) {
      switch (update.sessionUpdate) {
        case 'agent_message_chunk':
          return say('text', update)
        case 'agent_thought_chunk':
          return say('reasoning', update)
        case 'tool_call':
        case 'tool_call_update':
          return takeCall(update)
        case 'plan':
          return takePlan(update.entries)
        case 'session_info_update':
          // Codex ends an answer that has failed as if all were well, and says so here.
          if (objectOf(objectOf(objectOf(update._meta)?.codex)?.threadStatus)?.type === 'systemError') hasFailed = true
      }
    },
    get problem() {
      return hasFailed ? (lastWarning ?? 'The program reports an error.') : undefined
    },
    callOf: id => calls.get(String(id)) ?? {},
  }
}

/** An update brings only what has changed. Codex tells what a command prints piece by piece, beside the protocol. */
function merged(call: JsonObject = {}, update: JsonObject): JsonObject {
  const changed = Object.entries(update).filter(([, value]) => value !== undefined && value !== null)
  const printed = objectOf(objectOf(update._meta)?.terminal_output_delta)?.data
  return {
    ...call,
    ...Object.fromEntries(changed),
    _meta: { ...objectOf(call._meta), ...objectOf(update._meta) },
    printed: `${call.printed ?? ''}${typeof printed === 'string' ? printed : ''}`,
  }
}
