import { findPlace, lastMessages } from '../../db/messages.ts'
import { findQueued } from '../../db/queued-messages.ts'
import { ApiError } from '../../errors.ts'
import type { Thread } from '../../model/thread.ts'
import type { Caller } from '../access/caller.ts'
import { type Enqueued, enqueue } from '../queue/enqueue.ts'
import type { Runtime } from '../runtime.ts'
import type { Asked, Identified } from './asked.ts'
import type { ChatRequest } from './chat-request.ts'
import { refusedBefore } from './plan-turn.ts'

/**
 * Lets the message of a chat wait for its busy thread, with all that its run will need. Throws run_active for what would
 * change what was said before, and queue_full.
 */
export function enqueueChat(
  runtime: Runtime,
  { keyId }: Caller,
  agentSlug: string,
  thread: Thread,
  asked: Asked,
  chat: ChatRequest & Identified,
): Enqueued {
  const { db } = runtime
  const { id } = thread
  const last = asked.prompt.findLast(({ role }) => role === 'user')
  if (!last || asked.isAgain || asked.replaces !== undefined) throw unqueued()
  const place = { sandboxId: thread.sandboxId, threadId: id, messageId: last.id }
  const isInThread = (messageId: string) => findPlace(db, id, messageId) !== undefined
  if (isInThread(last.id)) {
    const newest = lastMessages(db, id, { messages: 1, characters: 0 })[0]
    // The client asks again whether its message was taken.
    if (newest?.id === last.id && Bun.deepEquals(newest.parts, last.parts)) return { ...place, status: 'running' }
    throw unqueued()
  }
  const isKnown = (messageId: string) => isInThread(messageId) || findQueued(db, id, messageId) !== undefined
  const { messages: _, trigger: _trigger, messageId: _id, ownIds, ...rest } = chat
  const { sandboxId: _sandbox, threadId: _thread, id: _name, externalUserId: _user, name: _title, ...request } = rest
  return enqueue(runtime, thread, {
    id: last.id,
    mode: chat.whenBusy === 'steer' ? 'steer' : 'queue',
    agentSlug,
    messages: [...refusedBefore(asked, ownIds, isKnown), ...asked.prompt],
    request,
    ...(keyId !== undefined && { keyId }),
  })
}

const unqueued = () =>
  new ApiError('run_active', 'This thread has a reply under way, and only a new message can wait for its end.')
