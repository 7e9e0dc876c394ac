import { writeWhenFree } from '../../db/busy.ts'
import { copyMessages, findPlace } from '../../db/messages.ts'
import { inTransaction } from '../../db/open.ts'
import { insertThread } from '../../db/threads.ts'
import { ApiError } from '../../errors.ts'
import type { Thread } from '../../model/thread.ts'
import type { Runtime } from '../runtime.ts'

/**
 * Makes a thread of the same sandbox that has another's messages up to one, and that one. It belongs to the same end user;
 * its engine gets the conversation from the thread. Throws invalid_request when there is no such message.
 */
export const forkThread = (
  { db }: Runtime,
  thread: Thread,
  { messageId, name = thread.name }: { messageId: string; name?: string | null },
): Promise<Thread> =>
  writeWhenFree(db, () =>
    inTransaction(db, () => {
      const place = findPlace(db, thread.id, messageId)
      if (!place) throw new ApiError('invalid_request', 'messageId: no message of this thread', { field: 'messageId' })
      const { sandboxId, externalUserId } = thread
      const fork = insertThread(db, {
        sandboxId,
        ...(name !== null && { name }),
        ...(externalUserId !== undefined && { externalUserId }),
      })
      copyMessages(db, thread.id, place.position, fork.id)
      return fork
    }),
  )
