import type { Database } from 'bun:sqlite'
import { findMessage, setParts } from '../../db/messages.ts'
import { inTransaction } from '../../db/open.ts'
import { endThread, listWaitingThreads } from '../../db/threads.ts'
import { listWaitingReplies, settleReply } from '../../db/waiting-replies.ts'
import type { Runtime } from '../runtime.ts'
import { closed } from './call-parts.ts'

/**
 * Ends the waiting of a sandbox's threads that have no run: nobody can answer any more. Undefined among `threadIds` means
 * all of them. Returns the threads that waited.
 */
export const cancelWaiting = (
  { db, runs }: Runtime,
  sandboxId: string,
  threadIds: readonly (string | undefined)[],
): string[] =>
  inTransaction(db, () => {
    const isMeant = (id: string) => threadIds.includes(undefined) || threadIds.includes(id)
    const waiting = listWaitingThreads(db, sandboxId).filter(id => isMeant(id) && !runs.activeOn(id))
    for (const threadId of waiting) {
      closeReplies(db, threadId, 'cancelled')
      endThread(db, threadId, { status: 'cancelled', error: null })
    }
    return waiting
  })

/** Closes what the thread's replies have left open. */
function closeReplies(db: Database, threadId: string, errorText: string): void {
  for (const key of listWaitingReplies(db, threadId)) {
    const reply = findMessage(db, threadId, key.messageId)
    if (reply) setParts(db, threadId, reply.id, closed(reply.parts, errorText))
    settleReply(db, key)
  }
}
