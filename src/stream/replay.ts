import type { MessagePart } from '../plugin-api/index.ts'
import { objectOf } from '../read/json.ts'
import type { Chunk, SteeringPart } from './chunk.ts'
import { project, type StreamProfile } from './project.ts'

/**
 * The first frames for a client that resumes while a run goes on with an earlier reply: it begins with an empty message, so it
 * gets the stored parts again. The message's id tells it which message of its own these replace, in the contract profile too. The
 * frames have no id, so a client that loses the connection among them begins anew.
 */
export function replayFrames(messageId: string, parts: readonly MessagePart[], profile: StreamProfile): Uint8Array {
  const start: Chunk = { type: 'start', messageId }
  const shown = profile === 'ai-7' ? parts : parts.map(part => (isAsking(part, profile) ? withoutApproval(part) : part))
  const chunks = [start, ...replayParts(shown).flatMap(chunk => project(chunk, profile) ?? [])]
  return new TextEncoder().encode(chunks.map(chunk => `data: ${JSON.stringify(chunk)}\n\n`).join(''))
}

/**
 * All that was asked is answered when a run goes on, and only version 7 can be told so: others would ask their user again. In
 * the contract's profile each approval is a question.
 */
const isAsking = ({ state }: MessagePart, profile: StreamProfile): boolean =>
  profile === 'contract' || state === 'approval-requested'

const withoutApproval = ({ approval: _, ...part }: MessagePart): MessagePart => part

/** The chunks that make these stored parts. */
export const replayParts = (parts: readonly MessagePart[]): Chunk[] =>
  parts.flatMap((part, index) =>
    part.type.startsWith('tool-') ? replayCall(part) : replayPart(part, `before-${index}`),
  )

function replayPart(part: MessagePart, id: string): Chunk[] {
  const { type, text } = part
  switch (type) {
    case 'text':
    case 'reasoning':
      if (typeof text !== 'string' || text === '') return []
      return [
        { type: `${type}-start`, id },
        { type: `${type}-delta`, id, delta: text },
        { type: `${type}-end`, id },
      ]
    case 'step-start':
      return [{ type: 'start-step' }]
    case 'file':
      return [{ type, mediaType: String(part.mediaType), url: String(part.url) }]
    case 'source-url': {
      const { sourceId, url, title } = part
      return [{ type, sourceId: String(sourceId), url: String(url), ...(typeof title === 'string' && { title }) }]
    }
    case 'steering-message':
      return [{ type, id: String(part.id), parts: (Array.isArray(part.parts) ? part.parts : []) as SteeringPart[] }]
    default:
      return isData(type) ? [{ type, id: String(part.id), data: part.data }] : []
  }
}

const isData = (type: string): type is `data-${string}` => type.startsWith('data-')

function replayCall(part: MessagePart): Chunk[] {
  const { type, state, input, output, errorText, providerExecuted } = part
  const [toolCallId, toolName] = [String(part.toolCallId), type.slice('tool-'.length)]
  const mark = providerExecuted === true ? ({ providerExecuted } as const) : {}
  const isAnswered = /^output-/.test(String(state))
  return [
    { type: 'tool-input-start', toolCallId, toolName, ...mark },
    // A client executes each call of its own whose input is available: one that it has answered comes as a piece of input.
    isAnswered && providerExecuted !== true
      ? { type: 'tool-input-delta', toolCallId, inputTextDelta: JSON.stringify(input ?? {}) }
      : { type: 'tool-input-available', toolCallId, toolName, input, ...mark },
    ...replayApproval(part, toolCallId),
    ...(state === 'output-available' ? [{ type: 'tool-output-available' as const, toolCallId, output, ...mark }] : []),
    ...(state === 'output-error'
      ? [{ type: 'tool-output-error' as const, toolCallId, errorText: String(errorText), ...mark }]
      : []),
    ...(state === 'output-denied' ? [{ type: 'tool-output-denied' as const, toolCallId }] : []),
  ]
}

function replayApproval({ approval }: MessagePart, toolCallId: string): Chunk[] {
  const { id, approved, reason } = objectOf(approval) ?? {}
  if (typeof id !== 'string') return []
  const why = typeof reason === 'string' ? { reason } : {}
  return [
    { type: 'tool-approval-request', approvalId: id, toolCallId },
    ...(typeof approved === 'boolean'
      ? [{ type: 'tool-approval-response' as const, approvalId: id, approved, ...why }]
      : []),
  ]
}
