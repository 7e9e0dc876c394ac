import type { MessagePart } from '../plugin.ts'
import type { Chunk, PartKind } from './chunk.ts'

/** The assistant's message of a stream, as it is stored and shown in its thread. */
export interface MessageBuilder {
  apply(chunk: Chunk): void
  /** What was said so far, in order. A tool call that has no result yet is left out. */
  parts(): MessagePart[]
}

interface SpokenDraft {
  type: PartKind
  text: string
}

interface ToolDraft {
  type: `tool-${string}`
  toolCallId: string
  input: unknown
  result?: { state: 'output-available'; output: unknown } | { state: 'output-error'; errorText: string }
}

export function createMessage(): MessageBuilder {
  const drafts: (SpokenDraft | ToolDraft)[] = []
  const spoken = new Map<string, SpokenDraft>()
  const tools = new Map<string, ToolDraft>()

  const addSpoken = (id: string, type: PartKind) => {
    const draft = { type, text: '' }
    drafts.push(draft)
    spoken.set(id, draft)
  }
  const setTool = (toolCallId: string, change: Pick<ToolDraft, 'input'> | Pick<ToolDraft, 'result'>) => {
    const draft = tools.get(toolCallId)
    if (draft) Object.assign(draft, change)
  }

  return {
    apply(chunk) {
      switch (chunk.type) {
        case 'text-start':
          return addSpoken(chunk.id, 'text')
        case 'reasoning-start':
          return addSpoken(chunk.id, 'reasoning')
        case 'text-delta':
        case 'reasoning-delta': {
          const draft = spoken.get(chunk.id)
          if (draft) draft.text += chunk.delta
          return
        }
        case 'tool-input-start': {
          // A call that is cut off before its input was whole still needs one that a model takes in its history.
          const draft: ToolDraft = { type: `tool-${chunk.toolName}`, toolCallId: chunk.toolCallId, input: {} }
          drafts.push(draft)
          tools.set(chunk.toolCallId, draft)
          return
        }
        case 'tool-input-available':
          return setTool(chunk.toolCallId, { input: chunk.input })
        case 'tool-output-available':
          return setTool(chunk.toolCallId, { result: { state: 'output-available', output: chunk.output } })
        case 'tool-output-error':
          return setTool(chunk.toolCallId, { result: { state: 'output-error', errorText: chunk.errorText } })
      }
    },
    parts: () => drafts.flatMap(finished),
  }
}

function finished(draft: SpokenDraft | ToolDraft): MessagePart[] {
  if ('text' in draft) return [{ type: draft.type, text: draft.text, state: 'done' }]
  if (!draft.result) return []
  const { state, ...outcome } = draft.result
  return [{ type: draft.type, toolCallId: draft.toolCallId, state, input: draft.input, ...outcome }]
}

/** A message's text: what its text parts say, joined. */
export const textOf = (parts: readonly MessagePart[]): string =>
  parts.map(part => (part.type === 'text' && typeof part.text === 'string' ? part.text : '')).join('')
