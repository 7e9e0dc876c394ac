import { findQueued, firstQueued, insertQueued, measureQueue, steerQueued } from '../../db/queued-messages.ts'
import { findThread } from '../../db/threads.ts'
import { ApiError } from '../../errors.ts'
import type { QueuedMessage } from '../../model/queued-message.ts'
import type { Thread } from '../../model/thread.ts'
import type { Runtime } from '../runtime.ts'

/** What becomes of a message that its thread has no time for now. */
export interface Enqueued {
  sandboxId: string
  threadId: string
  /** `steering`: it goes to the active run. `running`: the thread has taken it already. */
  status: 'queued' | 'steering' | 'running'
  messageId: string
}

/** The most that may wait for one thread. */
const MAX_MESSAGES = 100
const MAX_CHARACTERS = 64 * 1024 * 1024

/** Whether a message has to wait: for a run, for an answer that a run waits for, or for messages before it. */
export const isBusy = ({ db, runs }: Runtime, { id, sandboxId }: Thread): boolean =>
  runs.activeOn(id) !== undefined ||
  findThread(db, sandboxId, id)?.status === 'waiting' ||
  firstQueued(db, id)?.isHeld === false

/**
 * Puts a message into its thread's queue, or gives it to the thread's active run when it is to steer and the run's engine
 * can. One of this id that is there already stays as it is, but may still be made to steer. Throws queue_full.
 */
export function enqueue(
  { db, runs, steerings }: Runtime,
  thread: Thread,
  message: Omit<QueuedMessage, 'threadId' | 'isHeld' | 'createdAt'>,
): Enqueued {
  const { id, messages } = message
  const isSteering = message.mode === 'steer' && runs.activeOn(thread.id) !== undefined
  const steering = isSteering ? steerings.find(thread.id) : undefined
  const mode = steering ? 'steer' : 'queue'
  const place = { sandboxId: thread.sandboxId, threadId: thread.id, messageId: id }
  const found = findQueued(db, thread.id, id)
  if (found?.mode === 'steer') return { ...place, status: steerings.find(thread.id) ? 'steering' : 'queued' }
  if (!found) {
    const { messages: count, characters } = measureQueue(db, thread.id)
    if (count >= MAX_MESSAGES || characters > MAX_CHARACTERS) {
      throw new ApiError('queue_full', 'This thread’s queue is full. Wait for its runs, or take messages back.')
    }
    insertQueued(db, { ...message, threadId: thread.id, mode })
  } else if (steering) steerQueued(db, thread.id, id)
  steering?.offer(id, found?.messages ?? messages)
  return { ...place, status: steering ? 'steering' : 'queued' }
}
