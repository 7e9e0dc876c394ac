import type { Database } from 'bun:sqlite'
import { listApprovalsOf } from '../../db/approvals.ts'
import { cancelClientCalls } from '../../db/client-calls.ts'
import { findMessage, findPlace, setParts } from '../../db/messages.ts'
import { listWaitingReplies, settleReply } from '../../db/waiting-replies.ts'
import type { MessagePart, StoredMessage } from '../../plugin-api/index.ts'
import { closed, withoutClientCalls } from './call-parts.ts'

const LEFT = 'The user went on without an answer.'
const TAKEN_BACK = 'The conversation went another way.'

/**
 * The user says something new while replies wait: no client will answer their calls any more, while a person may still
 * decide on others. Returns the history as it is then. A reply that the thread no longer has waits for nothing.
 */
export function leaveOpenCalls(db: Database, threadId: string, history: StoredMessage[]): StoredMessage[] {
  const changed = new Map<string, MessagePart[]>()
  for (const key of listWaitingReplies(db, threadId)) {
    const reply = findMessage(db, threadId, key.messageId)
    if (reply) {
      const parts = withoutClientCalls(reply.parts, LEFT)
      setParts(db, threadId, reply.id, parts)
      changed.set(reply.id, parts)
      cancelClientCalls(db, key)
    }
    const isAsking = listApprovalsOf(db, threadId, key.messageId).some(
      ({ status, usedAt }) => status === 'pending' || (status === 'approved' && usedAt === null),
    )
    if (!reply || !isAsking) settleReply(db, key)
  }
  return history.map(message => ({ ...message, parts: changed.get(message.id) ?? message.parts }))
}

/**
 * Takes back what the replies from this message on have asked, before the thread is cut there: a branch that keeps one shows
 * that nobody can answer it any more.
 */
export function takeBackCalls(db: Database, threadId: string, firstMessageId: string | undefined): void {
  const first = firstMessageId === undefined ? undefined : findPlace(db, threadId, firstMessageId)
  if (!first) return
  for (const key of listWaitingReplies(db, threadId)) {
    const reply = findMessage(db, threadId, key.messageId)
    const place = findPlace(db, threadId, key.messageId)
    if (!reply || !place || place.position < first.position) continue
    setParts(db, threadId, reply.id, closed(reply.parts, TAKEN_BACK))
    settleReply(db, key)
  }
}
