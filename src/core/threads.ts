import type { Database } from 'bun:sqlite'
import { writeWhenFree } from '../db/busy.ts'
import { listMessages, removeMessagesFrom } from '../db/messages.ts'
import type { Sandbox } from '../db/sandboxes.ts'
import {
  clearEngineSession,
  deleteThread,
  findThread,
  insertThread,
  listThreads,
  type Thread,
  threadUsage,
} from '../db/threads.ts'
import { ApiError } from '../errors.ts'
import type { Runtime } from '../runtime.ts'
import { textOf } from '../stream/message.ts'
import type { Caller } from './access.ts'

/** Throws thread_not_found, also for a thread of another sandbox or user. */
export function getThread({ db }: Runtime, caller: Caller, sandbox: Sandbox, id: string): Thread {
  const thread = findThread(db, sandbox.id, id)
  if (!thread || !isSeen(caller, thread)) throw new ApiError('thread_not_found', 'There is no such thread.')
  return thread
}

/** The sandbox's threads that the caller may see, newest first. */
export const threadsOf = ({ db }: Runtime, caller: Caller, sandbox: Sandbox): Thread[] =>
  listThreads(db, sandbox.id).filter(thread => isSeen(caller, thread))

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

/** A thread with its messages and what its ended runs used. The half-made reply of a run is not among them. */
export const threadDetail = ({ db }: Runtime, thread: Thread) => ({
  ...thread,
  messages: listMessages(db, thread.id).map(message => ({ ...message, content: textOf(message.parts) })),
  usage: threadUsage(db, thread.id),
})

/** Takes back what was said from a message on, and from what an engine keeps: it is told the conversation anew. */
export function cutThread(db: Database, id: string, firstMessageId: string | undefined): void {
  if (firstMessageId !== undefined) removeMessagesFrom(db, id, firstMessageId)
  clearEngineSession(db, id)
}

/** Cancels what runs in it first. */
export async function removeThread({ db, runs }: Runtime, thread: Thread): Promise<void> {
  await runs.silence(thread.sandboxId, thread.id)
  await writeWhenFree(db, () => deleteThread(db, thread.id))
}

const isSeen = ({ token }: Caller, thread: Thread) =>
  token?.userId === undefined || thread.externalUserId === token.userId
