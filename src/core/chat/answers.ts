import type { Database } from 'bun:sqlite'
import { bounds } from '../../bounds.ts'
import { decideApproval, findApproval, listApprovalsOf } from '../../db/approvals.ts'
import { answerClientCall, findClientCall, listClientCallsOf } from '../../db/client-calls.ts'
import { findMessage, findPlace, setParts } from '../../db/messages.ts'
import { ApiError } from '../../errors.ts'
import type { Approval, Decision } from '../../model/approval.ts'
import type { ClientAnswer, ClientCall } from '../../model/client-call.ts'
import type { CallAnswer, MessagePart, StoredMessage } from '../../plugin-api/index.ts'
import { objectOf } from '../../read/json.ts'
import type { RunEvent } from '../../stream/run-event.ts'
import { answered, asking, decided } from './call-parts.ts'

/** What a client says to calls that wait. */
export type PostedAnswer =
  | { approval: Approval; decision: Decision & { status: 'approved' | 'denied' } }
  | { call: ClientCall; answer: ClientAnswer }

/**
 * The answers among the parts of a posted reply. One counts only when exactly this call of this thread waits for it: all
 * else in the reply is what a client makes of it, and changes nothing.
 */
export function findAnswers(db: Database, teamId: string, threadId: string, reply: StoredMessage): PostedAnswer[] {
  const isKnown = findPlace(db, threadId, reply.id) !== undefined
  // A client whose stream named no message has given it an id of its own.
  const isOf = (messageId: string) => !isKnown || messageId === reply.id
  const seen = new Set<string>()
  return reply.parts.flatMap((part): PostedAnswer[] => {
    const { toolCallId, state } = part
    if (typeof toolCallId !== 'string' || seen.has(toolCallId)) return []
    seen.add(toolCallId)
    const { id, approved, reason } = objectOf(part.approval) ?? {}
    if (typeof id === 'string' && typeof approved === 'boolean') {
      const approval = findApproval(db, teamId, id)
      const isMeant = approval?.threadId === threadId && approval.toolCallId === toolCallId && isOf(approval.messageId)
      if (!approval || !isMeant || !isOpen(approval)) return []
      if (typeof reason === 'string' && reason.length > bounds.name) throw tooLong()
      const status = approved ? 'approved' : 'denied'
      return [{ approval, decision: { status, ...(typeof reason === 'string' && { reason }) } }]
    }
    const answer = toClientAnswer(state, part)
    const call = answer && findClientCall(db, threadId, toolCallId)
    return answer && call && isOpen(call) && isOf(call.messageId) ? [{ call, answer }] : []
  })
}

/** What has expired may be pending until the next sweep. */
const isOpen = ({ status, expiresAt }: { status: string; expiresAt: string }) =>
  status === 'pending' && expiresAt > new Date().toISOString()

const tooLong = () =>
  new ApiError('invalid_request', `messages: a reason has more than ${bounds.name} characters`, { field: 'messages' })

function toClientAnswer(state: unknown, { output, errorText }: MessagePart): ClientAnswer | undefined {
  if (state === 'output-available') return { output: output ?? null }
  return state === 'output-error' && typeof errorText === 'string' ? { errorText } : undefined
}

/** Stores a decision, and shows it in the thread. False when there was one already. */
export function storeDecision(db: Database, approval: Approval, decision: Decision): boolean {
  if (!decideApproval(db, approval.id, decision)) return false
  showAnswers(db, approval)
  return true
}

/** Stores what the client gave for a call, and shows it in the thread. False when there was an answer already. */
export function storeOutput(
  db: Database,
  call: ClientCall,
  answer: ClientAnswer,
  status: 'answered' | 'expired' = 'answered',
): boolean {
  if (!answerClientCall(db, call, status, answer)) return false
  showAnswers(db, call)
  return true
}

/** The answers of one reply that its agent was not given yet. */
export interface OpenAnswers {
  approvals: Approval[]
  calls: ClientCall[]
}

interface ReplyKey {
  threadId: string
  messageId: string
}

export const findOpenAnswers = (db: Database, { threadId, messageId }: ReplyKey): OpenAnswers => ({
  approvals: listApprovalsOf(db, threadId, messageId).filter(isNew),
  calls: listClientCallsOf(db, threadId, messageId).filter(isNew),
})

const isNew = ({ status, usedAt }: { status: string; usedAt: string | null }) => status !== 'pending' && usedAt === null

/** Brings the stored reply to what was answered. A reply that is still under way gets it at its end. */
export function showAnswers(db: Database, key: ReplyKey): void {
  const { threadId, messageId } = key
  const reply = findMessage(db, threadId, messageId)
  if (reply) setParts(db, threadId, messageId, withAnswers(reply.parts, findOpenAnswers(db, key)))
}

export function withAnswers(parts: readonly MessagePart[], { approvals, calls }: OpenAnswers): MessagePart[] {
  let changed = [...parts]
  for (const approval of approvals) changed = decided(changed, approval.toolCallId, toDecision(approval))
  for (const { toolCallId, answer } of calls) if (answer) changed = answered(changed, toolCallId, answer)
  return changed
}

/** The reply as it was before these answers. */
export function withoutAnswers(parts: readonly MessagePart[], { approvals, calls }: OpenAnswers): MessagePart[] {
  let changed = [...parts]
  for (const { id, toolCallId } of approvals) changed = asking(changed, toolCallId, id)
  for (const { toolCallId } of calls) changed = asking(changed, toolCallId, undefined)
  return changed
}

/** The answers for the engine, in the order of the reply's calls. */
export function toCallAnswers(parts: readonly MessagePart[], { approvals, calls }: OpenAnswers): CallAnswer[] {
  const places = new Map(parts.map(({ toolCallId }, index) => [toolCallId, index]))
  const ofTools = approvals.filter(({ kind }) => kind === 'tool')
  const ofPeople = ofTools.map((approval): CallAnswer => {
    const { reason } = toDecision(approval)
    const call = { callId: approval.toolCallId, name: approval.tool, input: approval.input }
    return approval.status === 'approved'
      ? { ...call, type: 'approved' }
      : { ...call, type: 'denied', ...(reason !== undefined && { reason }) }
  })
  const ofClients = calls.flatMap(({ toolCallId: callId, tool: name, input, answer }): CallAnswer[] => {
    if (!answer) return []
    const call = { callId, name, input }
    return 'output' in answer
      ? [{ ...call, type: 'output', output: answer.output }]
      : [{ ...call, type: 'error', error: answer.errorText }]
  })
  return [...ofPeople, ...ofClients]
    .filter(({ callId }) => places.has(callId))
    .sort((one, other) => (places.get(one.callId) ?? 0) - (places.get(other.callId) ?? 0))
}

/** The answers as the first events of the run that goes on. */
export const toOpening = ({ approvals, calls }: OpenAnswers): RunEvent[] => [
  ...approvals.map((approval): RunEvent => {
    const { id: approvalId, ...decision } = toDecision(approval)
    return { type: 'approval-response', callId: approval.toolCallId, approvalId, ...decision }
  }),
  ...calls.flatMap(({ toolCallId: callId, answer }): RunEvent[] => {
    if (!answer) return []
    return 'output' in answer
      ? [{ type: 'tool-result', callId, output: answer.output }]
      : [{ type: 'tool-result', callId, output: null, error: answer.errorText }]
  }),
]

/** The reason of what has expired. */
export const NOBODY_ANSWERED = 'Nobody answered in time.'

const toDecision = ({ id, status, answerReason }: Approval) => {
  const reason = status === 'expired' ? NOBODY_ANSWERED : answerReason
  return { id, approved: status === 'approved', ...(reason !== null && { reason }) }
}
