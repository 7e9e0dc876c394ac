import { inTransaction } from '../../db/open.ts'
import { deleteQueued, dropQueue, findQueued, firstQueued, holdQueue, listQueued } from '../../db/queued-messages.ts'
import { ApiError } from '../../errors.ts'
import type { MessagePart } from '../../plugin-api/index.ts'
import type { Runtime } from '../runtime.ts'

/** A message that waits, as clients see it. */
export interface WaitingMessage {
  id: string
  parts: MessagePart[]
  /** `steering`: the active run may take it. */
  status: 'queued' | 'steering'
  createdAt: string
}

/** A thread's queue, in the order in which it runs. */
export const listQueue = ({ db, steerings }: Runtime, threadId: string): WaitingMessage[] =>
  listQueued(db, threadId).map(({ id, mode, messages, createdAt }) => ({
    id,
    parts: messages.find(message => message.id === id)?.parts ?? [],
    // What a run has not taken before its end has its own turn.
    status: mode === 'steer' && steerings.find(threadId) ? 'steering' : 'queued',
    createdAt,
  }))

/** Whether a queue waits until someone says go. */
export const isQueueStopped = ({ db }: Runtime, threadId: string): boolean => firstQueued(db, threadId)?.isHeld ?? false

/** Takes a message back. Throws message_not_found, and conflict for one that the agent has got meanwhile. */
export function takeBack({ db, steerings }: Runtime, threadId: string, id: string): void {
  const found = findQueued(db, threadId, id)
  if (!found) throw new ApiError('message_not_found', 'There is no such message in the queue.')
  const steering = found.mode === 'steer' ? steerings.find(threadId) : undefined
  if (steering && !steering.withdraw(id)) {
    throw new ApiError('conflict', 'The agent has got this message already.')
  }
  deleteQueued(db, threadId, id)
}

/** Stops the queues of threads whose runs are about to be cancelled, or deletes them. */
export function stopQueues({ db, steerings }: Runtime, threadIds: readonly string[], what: 'keep' | 'drop'): void {
  inTransaction(db, () => {
    for (const threadId of threadIds) {
      if (what === 'keep') holdQueue(db, threadId, true)
      else {
        steerings.find(threadId)?.close()
        dropQueue(db, threadId)
      }
    }
  })
}
