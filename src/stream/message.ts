import type { MessagePart } from '../plugin-api/index.ts'
import type { Chunk, PartKind } from './chunk.ts'

/** Builds the assistant's message from a stream's chunks, in the form that is stored and shown in the thread. */
export interface MessageBuilder {
  apply(chunk: Chunk): void
  /** True while there is no text and no tool call. */
  readonly isEmpty: boolean
  /** The parts so far, in order. Calls without a complete input are left out. */
  parts(): MessagePart[]
}

/** A part under construction: its content so far. */
interface SpokenDraft {
  type: PartKind
  text: string
}

interface ToolDraft {
  type: `tool-${string}`
  toolCallId: string
  state: 'input-streaming' | 'input-available' | `approval-${'requested' | 'responded'}` | `output-${string}`
  input: unknown
  output?: unknown
  errorText?: string
  approval?: { id: string; approved?: boolean; reason?: string }
  providerExecuted?: true
}

type Draft = SpokenDraft | ToolDraft | MessagePart

/** Over 100 lines: one state of the parts, with a case for each chunk. `before`: the stored parts of a reply that goes on. */
export function createMessage(before: readonly MessagePart[] = []): MessageBuilder {
  const drafts: Draft[] = before.map(part => ({ ...part }))
  const spoken = new Map<string, SpokenDraft>()
  const tools = new Map<string, ToolDraft>()
  for (const draft of drafts) if (isTool(draft)) tools.set(draft.toolCallId, draft)

  const addSpoken = (id: string, type: PartKind) => {
    const draft = { type, text: '' }
    drafts.push(draft)
    spoken.set(id, draft)
  }
  const setTool = (toolCallId: string, change: Partial<ToolDraft>) => {
    const draft = tools.get(toolCallId)
    if (draft) Object.assign(draft, change)
  }
  const findAsking = (approvalId: string) => [...tools.values()].find(({ approval }) => approval?.id === approvalId)

  /** Puts a part in the place of an earlier one of its type and id. */
  function putData(part: MessagePart): void {
    const index = drafts.findIndex(draft => draft.type === part.type && 'id' in draft && draft.id === part.id)
    if (index < 0) drafts.push(part)
    else drafts[index] = part
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
          const { toolCallId, toolName, providerExecuted } = chunk
          const draft: ToolDraft = {
            type: `tool-${toolName}`,
            toolCallId,
            state: 'input-streaming',
            input: {},
            ...(providerExecuted && { providerExecuted }),
          }
          drafts.push(draft)
          tools.set(toolCallId, draft)
          return
        }
        case 'tool-input-available':
          return setTool(chunk.toolCallId, { state: 'input-available', input: chunk.input })
        case 'tool-output-available':
          return setTool(chunk.toolCallId, { state: 'output-available', output: chunk.output })
        case 'tool-output-error':
          return setTool(chunk.toolCallId, { state: 'output-error', errorText: chunk.errorText })
        case 'tool-approval-request':
          return setTool(chunk.toolCallId, { state: 'approval-requested', approval: { id: chunk.approvalId } })
        case 'tool-approval-response': {
          const { approvalId: id, approved, reason } = chunk
          const draft = findAsking(id)
          if (draft) draft.approval = { id, approved, ...(reason !== undefined && { reason }) }
          if (draft?.state === 'approval-requested') draft.state = 'approval-responded'
          return
        }
        case 'tool-output-denied':
          return setTool(chunk.toolCallId, { state: 'output-denied' })
        case 'file':
        case 'source-url':
          drafts.push(chunk)
          return
        default:
          if ('data' in chunk && chunk.transient !== true) {
            const { type, id, data } = chunk
            putData({ type, id, data })
          }
      }
    },
    parts: () => drafts.flatMap(finished),
  }
}

const isTool = (draft: Draft): draft is ToolDraft => 'toolCallId' in draft && typeof draft.toolCallId === 'string'

function finished(draft: Draft): MessagePart[] {
  if ('text' in draft) return [{ type: draft.type, text: draft.text, state: 'done' }]
  if (!isTool(draft)) return [draft]
  if (draft.state === 'input-streaming') return []
  const { type, toolCallId, state, input, output, errorText, approval, providerExecuted } = draft
  return [
    {
      ...{ type, toolCallId, state, input },
      ...(state === 'output-available' && { output }),
      ...(state === 'output-error' && { errorText }),
      ...(approval && { approval }),
      ...(providerExecuted && { providerExecuted }),
    },
  ]
}

/** Joins the text parts of a message. */
export const textOf = (parts: readonly MessagePart[]): string =>
  parts.map(part => (part.type === 'text' && typeof part.text === 'string' ? part.text : '')).join('')
