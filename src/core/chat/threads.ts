import type { Database } from 'bun:sqlite'
import { writeWhenFree } from '../../db/busy.ts'
import { findPlace, lastMessages, listMessages, nextMessages, removeMessagesFrom } from '../../db/messages.ts'
import {
  clearEngineSession,
  deleteThread,
  findThread,
  insertThread,
  listThreads,
  threadUsage,
} from '../../db/threads.ts'
import { ApiError } from '../../errors.ts'
import type { Message } from '../../model/message.ts'
import type { Sandbox } from '../../model/sandbox.ts'
import type { Thread, ThreadPage, ThreadUsage } from '../../model/thread.ts'
import { textOf } from '../../stream/message.ts'
import type { Caller } from '../access/caller.ts'
import type { Runtime } from '../runtime.ts'

/** Throws thread_not_found, also for a thread of another sandbox or user. */
export function getThread({ db }: Runtime, caller: Caller, sandbox: Sandbox, id: string): Thread {
  const thread = findThread(db, sandbox.id, id)
  if (!thread || !isVisible(caller, thread)) throw new ApiError('thread_not_found', 'There is no such thread.')
  return thread
}

/** The sandbox's threads that the caller may see, newest first. */
export const listVisibleThreads = (
  { db }: Runtime,
  { token }: Caller,
  sandbox: Sandbox,
  page: ThreadPage = {},
): Thread[] => listThreads(db, sandbox.id, { ...page, ...(token?.userId !== undefined && { userId: token.userId }) })

export function createThread(
  { db }: Runtime,
  caller: Caller,
  sandbox: Sandbox,
  { name, externalUserId }: { name?: string | null; externalUserId?: string },
): Thread {
  const userId = caller.token?.userId ?? externalUserId
  return insertThread(db, {
    sandboxId: sandbox.id,
    ...(typeof name === 'string' && { name }),
    ...(userId !== undefined && { externalUserId: userId }),
  })
}

/** A thread with its messages and what its ended runs used. The unfinished reply of a run is not among them. */
export const describeThread = ({ db }: Runtime, thread: Thread) => ({
  ...thread,
  messages: listMessages(db, thread.id).map(withContent),
  usage: threadUsage(db, thread.id),
})

/** Sums what a thread's ended runs used. */
export const sumUsage = ({ db }: Runtime, { id }: Thread): ThreadUsage => threadUsage(db, id)

/** Pages of a thread's messages, from its first to its last. Throws when the thread is deleted meanwhile. */
export function* messagePages({ db }: Runtime, thread: Thread) {
  for (let after = 0; ; ) {
    const page = nextMessages(db, thread.id, PAGE, after)
    if (!findThread(db, thread.sandboxId, thread.id)) throw new Error('The thread was deleted.')
    if (!page) return
    yield page.messages.map(withContent)
    after = page.last
  }
}

/** The newest messages of a thread, oldest first, or those before one. Throws invalid_request when it has no such message. */
export function pageMessages({ db }: Runtime, thread: Thread, { limit, before }: { limit: number; before?: string }) {
  const place = before === undefined ? undefined : findPlace(db, thread.id, before)
  if (before !== undefined && !place) {
    throw new ApiError('invalid_request', 'before: no message of this thread', { field: 'before' })
  }
  const bounds = { messages: limit + 1, characters: Number.MAX_SAFE_INTEGER }
  const found = lastMessages(db, thread.id, bounds, place?.position)
  const messages = found.slice(-limit)
  return { messages: messages.map(withContent), nextBefore: found.length > limit ? (messages[0]?.id ?? null) : null }
}

/** What is read and sent at once. */
const PAGE = { messages: 256, characters: 256 * 1024 }

const withContent = (message: Message) => ({ ...message, content: textOf(message.parts) })

/** Removes a message and those after it, and the engine's session: the engine then gets the conversation from the thread. */
export function cutThread(db: Database, id: string, firstMessageId: string | undefined): void {
  if (firstMessageId !== undefined) removeMessagesFrom(db, id, firstMessageId)
  clearEngineSession(db, id)
}

/** Cancels what runs in it first. */
export async function removeThread({ db, runs }: Runtime, thread: Thread): Promise<void> {
  await runs.silence(thread.sandboxId, thread.id)
  await writeWhenFree(db, () => deleteThread(db, thread.id))
}

const isVisible = ({ token }: Caller, thread: Thread) =>
  token?.userId === undefined || thread.externalUserId === token.userId
