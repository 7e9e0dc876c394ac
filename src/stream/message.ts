import type { MessagePart } from '../plugin-api/index.ts'
import type { Chunk, PartKind } from './chunk.ts'

/** Builds the assistant's message from a stream's chunks, in the form that is stored and shown in the thread. */
export interface MessageBuilder {
  apply(chunk: Chunk): void
  /** True while there is no text and no tool call. */
  readonly isEmpty: boolean
  /** The parts so far, in order, without tool calls that have no result yet. */
  parts(): MessagePart[]
}

interface SpokenDraft {
  type: PartKind
  text: string
}

type StepDraft = { type: 'step-start' }

interface ToolDraft {
  type: `tool-${string}`
  toolCallId: string
  providerExecuted: boolean
  input: unknown
  result?: { state: 'output-available'; output: unknown } | { state: 'output-error'; errorText: string }
}

export function createMessage(): MessageBuilder {
  const drafts: (SpokenDraft | ToolDraft | StepDraft)[] = []
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
    get isEmpty() {
      return drafts.length === 0
    },
    apply(chunk) {
      switch (chunk.type) {
        case 'start-step':
          drafts.push({ type: 'step-start' })
          return
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
          // A call that ended before its input was complete still needs an input that a model accepts in its history.
          const { toolCallId, toolName, providerExecuted = false } = chunk
          const draft: ToolDraft = { type: `tool-${toolName}`, toolCallId, providerExecuted, input: {} }
          drafts.push(draft)
          tools.set(toolCallId, draft)
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

function finished(draft: SpokenDraft | ToolDraft | StepDraft): MessagePart[] {
  if ('text' in draft) return [{ type: draft.type, text: draft.text, state: 'done' }]
  if (!('toolCallId' in draft)) return [draft]
  if (!draft.result) return []
  const { type, toolCallId, providerExecuted, input } = draft
  const { state, ...outcome } = draft.result
  return [{ type, toolCallId, state, input, ...outcome, ...(providerExecuted && { providerExecuted }) }]
}

/** Joins the text parts of a message. */
export const textOf = (parts: readonly MessagePart[]): string =>
  parts.map(part => (part.type === 'text' && typeof part.text === 'string' ? part.text : '')).join('')
