import type { Database } from 'bun:sqlite'
import { findMessage, findPlace, lastMessages, nextMessages } from '../../db/messages.ts'
import { findQueued } from '../../db/queued-messages.ts'
import { ApiError } from '../../errors.ts'
import type { Thread } from '../../model/thread.ts'
import type { StoredMessage } from '../../plugin-api/index.ts'
import { objectOf } from '../../read/json.ts'
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
    // The client asks again whether its message was taken.
    const isTaken = isAnsweredNow(runtime, id, last) || isAnswered(db, id, last)
    if (isTaken) return { ...place, status: 'running' }
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

/** Whether the active run answers this very message: its own, or one that has steered it. */
function isAnsweredNow({ db, runs }: Runtime, threadId: string, { id, parts }: StoredMessage): boolean {
  const newest = lastMessages(db, threadId, NEWEST)
  const replyId = runs.activeOn(threadId)?.messageId
  const before = newest.findLastIndex(message => message.role === 'assistant' && message.id !== replyId)
  const found = newest.slice(before + 1).find(message => message.id === id)
  return found !== undefined && Bun.deepEquals(found.parts, parts)
}

/** More than one turn takes in practice. */
const NEWEST = { messages: 100, characters: 8 * 1024 * 1024 }

/** Finds that this very message has a whole reply already, in a thread that is free: it was sent again. */
export function findAnswered(
  { db }: Runtime,
  { id, sandboxId }: Thread,
  { prompt, isAgain, replaces }: Asked,
): Enqueued | undefined {
  const last = prompt.findLast(({ role }) => role === 'user')
  const isSentAgain = last && !isAgain && replaces === undefined && isAnswered(db, id, last)
  return isSentAgain ? { sandboxId, threadId: id, status: 'running', messageId: last.id } : undefined
}

/** Whether a message of the thread has these parts, and behind it a reply that is whole or waits for answers. */
function isAnswered(db: Database, threadId: string, { id, parts }: StoredMessage): boolean {
  const found = findMessage(db, threadId, id)
  const place = found && Bun.deepEquals(found.parts, parts) ? findPlace(db, threadId, id) : undefined
  const later = place && nextMessages(db, threadId, NEWEST, { after: place.position })
  const reply = later?.messages.find(({ role }) => role === 'assistant')
  return reply !== undefined && objectOf(reply.metadata)?.status === undefined
}

const unqueued = () =>
  new ApiError('run_active', 'This thread has a reply under way, and only a new message can wait for its end.')
