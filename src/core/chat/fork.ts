import type { Database } from 'bun:sqlite'
import { writeWhenFree } from '../../db/busy.ts'
import { copyMessages, findMessage, findPlace, setParts } from '../../db/messages.ts'
import { inTransaction } from '../../db/open.ts'
import { insertThread } from '../../db/threads.ts'
import { listWaitingReplies } from '../../db/waiting-replies.ts'
import { ApiError } from '../../errors.ts'
import type { Thread } from '../../model/thread.ts'
import type { Runtime } from '../runtime.ts'
import { closed } from './call-parts.ts'

/**
 * Makes a thread of the same sandbox that has another's messages up to one, and that one. It belongs to the same end user;
 * its engine gets the conversation from the thread. What waits for an answer waits in the first thread alone. Throws invalid_request when there is no such message.
 */
export const forkThread = (
  { db }: Runtime,
  thread: Thread,
  { messageId, name = thread.name }: { messageId: string; name?: string | null },
): Promise<Thread> => writeWhenFree(db, () => inTransaction(db, () => copyThread(db, thread, { messageId, name })))

/** Does the same within the caller's transaction, and into any sandbox. Without a message it copies all that is stored. */
export function copyThread(
  db: Database,
  thread: Thread,
  { sandboxId = thread.sandboxId, messageId, name = thread.name }: CopyThread,
): Thread {
  const until = messageId === undefined ? Number.MAX_SAFE_INTEGER : positionOf(db, thread, messageId)
  const { externalUserId } = thread
  const fork = insertThread(db, {
    sandboxId,
    ...(name !== null && { name }),
    ...(externalUserId !== undefined && { externalUserId }),
  })
  copyMessages(db, thread.id, until, fork.id)
  closeCopies(db, thread.id, fork.id)
  return fork
}

export interface CopyThread {
  sandboxId?: string
  messageId?: string
  name?: string | null
}

/** The position of a message in its thread. Throws invalid_request when there is no such message. */
export function positionOf(db: Database, thread: Thread, messageId: string): number {
  const place = findPlace(db, thread.id, messageId)
  if (!place) throw new ApiError('invalid_request', 'messageId: no message of this thread', { field: 'messageId' })
  return place.position
}

function closeCopies(db: Database, threadId: string, forkId: string): void {
  for (const { messageId } of listWaitingReplies(db, threadId)) {
    const copy = findMessage(db, forkId, messageId)
    if (copy) setParts(db, forkId, messageId, closed(copy.parts, 'This is a copy: the call waits in the first thread.'))
  }
}
