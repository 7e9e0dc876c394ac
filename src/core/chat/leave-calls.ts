import type { Database } from 'bun:sqlite'
import { listApprovalsOf } from '../../db/approvals.ts'
import { cancelClientCalls } from '../../db/client-calls.ts'
import { findMessage, setParts } from '../../db/messages.ts'
import { listWaitingReplies, settleReply } from '../../db/waiting-replies.ts'
import type { MessagePart, StoredMessage } from '../../plugin-api/index.ts'
import { withoutClientCalls } from './call-parts.ts'

const LEFT = 'The user went on without an answer.'

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
