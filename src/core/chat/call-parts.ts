import type { ClientAnswer } from '../../model/client-call.ts'
import type { MessagePart } from '../../plugin-api/index.ts'

/** Changes the part of one call; others stay as they are. */
const withCall = (
  parts: readonly MessagePart[],
  toolCallId: string,
  change: (part: MessagePart) => MessagePart,
): MessagePart[] => parts.map(part => (part.toolCallId === toolCallId ? change(part) : part))

/** A call that somebody has decided on, and that was not begun. */
export const decided = (
  parts: readonly MessagePart[],
  toolCallId: string,
  approval: { id: string; approved: boolean; reason?: string },
): MessagePart[] =>
  withCall(parts, toolCallId, part => ({
    ...bare(part),
    state: approval.approved ? 'approval-responded' : 'output-denied',
    approval,
  }))

/** A client's call with what the client gave. */
export const answered = (parts: readonly MessagePart[], toolCallId: string, answer: ClientAnswer): MessagePart[] =>
  withCall(parts, toolCallId, part => ({
    ...bare(part),
    ...('output' in answer
      ? { state: 'output-available', output: answer.output }
      : { state: 'output-error', errorText: answer.errorText }),
  }))

/** A call as it was while it waited; `approvalId`: for a person. */
export const asking = (
  parts: readonly MessagePart[],
  toolCallId: string,
  approvalId: string | undefined,
): MessagePart[] =>
  withCall(parts, toolCallId, part => ({
    ...bare(part),
    ...(approvalId === undefined
      ? { state: 'input-available' }
      : { state: 'approval-requested', approval: { id: approvalId } }),
  }))

/** Closes every call that is open. */
export const closed = (parts: readonly MessagePart[], errorText: string): MessagePart[] =>
  parts.map(part => (isOpen(part) ? { ...part, state: 'output-error', errorText } : part))

/** Closes the client's calls that are open; a person may still decide on others. */
export const withoutClientCalls = (parts: readonly MessagePart[], errorText: string): MessagePart[] =>
  parts.map(part =>
    part.state === 'input-available' && part.providerExecuted !== true
      ? { ...part, state: 'output-error', errorText }
      : part,
  )

const openStates: ReadonlySet<unknown> = new Set(['input-available', 'approval-requested', 'approval-responded'])

const isOpen = ({ toolCallId, state }: MessagePart): boolean => typeof toolCallId === 'string' && openStates.has(state)

/** The call alone, without what became of it. */
const bare = ({ output: _, errorText: __, approval: ___, ...part }: MessagePart): MessagePart => part
