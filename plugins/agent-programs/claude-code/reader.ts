import type { EngineEnd, EngineEvent } from '../../../src/plugin-api/index.ts'
import { type JsonObject, objectOf, objectsOf } from '../../../src/read/json.ts'
import type { AnswerSink } from '../answer.ts'
import { failed } from '../conversation.ts'
import { toToolOutput } from '../tool-output.ts'

/** Converts the messages of one answer to events. */
export interface Reader {
  /** Emits a message's events. Gives the answer's end when the message is the last. */
  read(message: JsonObject): EngineEnd | undefined
  /** Reports the result of this call too, though a sub-agent makes it. */
  adopt(callId: string): void
}

/** Over 100 lines: one state of the message that is being read, with a case for each kind of line. */
export function createReader({ emit, setWriting }: Pick<AnswerSink, 'emit' | 'setWriting'>): Reader {
  /** The blocks that stream now, by index. */
  const blocks = new Map<unknown, { id: string; isTool: boolean }>()
  const called = new Set<string>()
  let messageId = ''
  let hasEmitted = false

  function readStream(event: JsonObject): void {
    if (event.type === 'message_start') {
      messageId = String(objectOf(event.message)?.id)
      blocks.clear()
      setWriting(true)
    }
    if (event.type === 'message_stop') setWriting(false)
    if (event.type === 'content_block_start') {
      const block = objectOf(event.content_block)
      const isTool = block?.type === 'tool_use'
      const id = isTool ? String(block?.id) : `${messageId}-${String(event.index)}`
      blocks.set(event.index, { id, isTool })
      if (isTool) emit({ type: 'tool-input', callId: id, name: String(block?.name), delta: '' })
    }
    const block = blocks.get(event.index)
    if (!block) return
    if (event.type === 'content_block_stop' && !block.isTool) emit({ type: 'part-end', id: block.id })
    const { type, text, thinking, partial_json } = objectOf(event.delta) ?? {}
    if (type === 'text_delta' && typeof text === 'string') {
      hasEmitted = true
      emit({ type: 'text', id: block.id, delta: text })
    }
    if (type === 'thinking_delta' && typeof thinking === 'string') {
      emit({ type: 'reasoning', id: block.id, delta: thinking })
    }
    if (type === 'input_json_delta' && typeof partial_json === 'string' && partial_json) {
      emit({ type: 'tool-input', callId: block.id, name: '', delta: partial_json })
    }
  }

  function readCalls(content: unknown): void {
    for (const { type, id, name, input } of objectsOf(content)) {
      if (type !== 'tool_use' || called.has(String(id))) continue
      called.add(String(id))
      emit({ type: 'tool-call', callId: String(id), name: String(name), input: input ?? {} })
    }
  }

  function readResults(content: unknown): void {
    for (const { type, tool_use_id: callId, content: output, is_error: isError } of objectsOf(content)) {
      if (type !== 'tool_result' || !called.delete(String(callId))) continue
      const result = toToolOutput(output)
      const error = isError === true ? { error: typeof result === 'string' ? result : JSON.stringify(result) } : {}
      emit({ type: 'tool-result', callId: String(callId), output: result, ...error })
    }
  }

  /** Work of a sub-agent is shown as progress of the call that started it. */
  function readInner(callId: string, content: unknown): void {
    for (const { type, text, name, input } of objectsOf(content)) {
      if (type === 'text' && typeof text === 'string') emit({ type: 'tool-progress', callId, data: { text } })
      if (type === 'tool_use') emit({ type: 'tool-progress', callId, data: { tool: name, input } })
    }
  }

  function readResult({ subtype, is_error: isError, result, errors }: JsonObject): EngineEnd {
    if (subtype === 'error_max_turns') {
      return failed(
        'max_turns',
        'The agent stopped: it reached the limit of model calls (maxTurns). Its work so far is kept.',
      )
    }
    const text = typeof result === 'string' ? result : ''
    if (isError === true || subtype !== 'success') {
      const reasons = Array.isArray(errors) ? errors.join(' ') : ''
      return failed('agent_failed', text || reasons || `Claude Code ended with ${String(subtype)}.`)
    }
    // Slash commands of the program answer without a model: no delta came.
    if (text && !hasEmitted) emit({ type: 'text', id: 'result', delta: text })
    return { status: 'completed' }
  }

  return {
    read(message) {
      const { type, parent_tool_use_id: parent } = message
      const content = objectOf(message.message)?.content
      if (type === 'result') return readResult(message)
      if (type === 'system') toNotices(message).forEach(emit)
      else if (typeof parent === 'string') {
        if (type === 'assistant') readInner(parent, content)
        else if (type === 'user') readResults(content)
      } else if (type === 'stream_event') readStream(objectOf(message.event) ?? {})
      else if (type === 'assistant') readCalls(content)
      else if (type === 'user') readResults(content)
      return undefined
    },
    adopt: callId => void called.add(callId),
  }
}

/** The notices for the user in a system message. */
function toNotices(message: JsonObject): EngineEvent[] {
  const { subtype, attempt, max_retries: most, error_status: status, tool_name: tool } = message
  const notice = (code: string, text: string): EngineEvent[] => [{ type: 'notice', level: 'warn', code, text }]
  if (subtype === 'api_retry') {
    const failure = `The model's answer failed (${String(status ?? 'no answer')}).`
    return notice('model_retry', `${failure} Trying again, ${String(attempt)} of ${String(most)}.`)
  }
  if (subtype === 'permission_denied')
    return notice('permission_denied', `${String(tool)} is not allowed in this mode.`)
  return []
}
