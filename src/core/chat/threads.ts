import { findActiveBranch } from '../../db/branches.ts'
import { writeWhenFree } from '../../db/busy.ts'
import { findPlace, lastMessages, listMessages, nextMessages } from '../../db/messages.ts'
import { deleteThread, findThread, insertThread, listThreads, renameThread, threadUsage } from '../../db/threads.ts'
import { ApiError } from '../../errors.ts'
import type { Message } from '../../model/message.ts'
import type { Sandbox } from '../../model/sandbox.ts'
import type { Thread, ThreadPage, ThreadUsage } from '../../model/thread.ts'
import { textOf } from '../../stream/message.ts'
import type { Caller } from '../access/caller.ts'
import type { Runtime } from '../runtime.ts'
import { findPath, type Path } from './branches.ts'

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

/** How many threads are read at once. */
const THREADS = 500

/** Yields pages of all threads that the caller may see, newest first; with `before`, only those that are older than it. */
export function* visibleThreadPages(runtime: Runtime, caller: Caller, sandbox: Sandbox, before?: string) {
  for (let from = before; ; ) {
    const page = listVisibleThreads(runtime, caller, sandbox, {
      limit: THREADS,
      ...(from !== undefined && { before: from }),
    })
    if (page.length > 0) yield page
    if (page.length < THREADS) return
    from = page.at(-1)?.id
  }
}

/** Whether the caller may see this thread of the sandbox. */
export function isVisibleThread({ db }: Runtime, caller: Caller, sandbox: Sandbox, id: string): boolean {
  const thread = findThread(db, sandbox.id, id)
  return thread !== undefined && isVisible(caller, thread)
}

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

/** Gives a thread a name, which no title replaces. */
export const nameThread = ({ db }: Runtime, { id }: Thread, name: string): Promise<void> =>
  writeWhenFree(db, () => renameThread(db, id, name))

/** A thread with its messages and what its ended runs used. The unfinished reply of a run is not among them. */
export const describeThread = ({ db }: Runtime, thread: Thread) => ({
  ...thread,
  messages: describedBy(findPath(db, thread.id, undefined), listMessages(db, thread.id)),
  usage: threadUsage(db, thread.id),
})

/** Sums what a thread's ended runs used. */
export const sumUsage = ({ db }: Runtime, { id }: Thread): ThreadUsage => threadUsage(db, id)

/**
 * Pages of a thread's messages, or a branch's, from the first to the last. Throws branch_not_found, and when the thread is
 * deleted or shows another branch meanwhile.
 */
export function* messagePages({ db }: Runtime, thread: Thread, branchId?: string) {
  const path = findPath(db, thread.id, branchId)
  const active = findActiveBranch(db, thread.id)
  for (const { owner, until } of path.stretches) {
    for (let after = 0; ; ) {
      const page = nextMessages(db, owner, PAGE, { after, until })
      if (!findThread(db, thread.sandboxId, thread.id)) throw new Error('The thread was deleted.')
      if (findActiveBranch(db, thread.id) !== active) throw new Error('The thread has changed.')
      if (!page) break
      yield describedBy(path, page.messages)
      after = page.last
    }
  }
}

/**
 * The newest messages of a thread, or of a branch, oldest first, or those before one. Throws invalid_request when it has no
 * such message, and branch_not_found.
 */
export function pageMessages(
  { db }: Runtime,
  thread: Thread,
  { limit, before, branch }: { limit: number; before?: string; branch?: string },
) {
  const path = findPath(db, thread.id, branch)
  const found: Message[] = []
  let isBefore = before === undefined
  for (const { owner, until } of path.stretches.toReversed()) {
    const place = isBefore || before === undefined ? undefined : findPlace(db, owner, before)
    isBefore ||= place !== undefined && place.position <= until
    if (!isBefore) continue
    const bounds = { messages: limit + 1 - found.length, characters: Number.MAX_SAFE_INTEGER }
    if (bounds.messages > 0) found.unshift(...lastMessages(db, owner, bounds, place?.position ?? until + 1))
  }
  if (!isBefore) throw new ApiError('invalid_request', 'before: no message of this thread', { field: 'before' })
  const messages = found.slice(-limit)
  return {
    messages: describedBy(path, messages),
    nextBefore: found.length > limit ? (messages[0]?.id ?? null) : null,
  }
}

/** What is read and sent at once. */
const PAGE = { messages: 256, characters: 256 * 1024 }

const describedBy = ({ forks }: Path, messages: readonly Message[]) =>
  messages.map(message => ({ ...message, content: textOf(message.parts), ...forks.get(message.id) }))

/** Cancels what runs in it first. */
export async function removeThread({ db, runs }: Runtime, thread: Thread): Promise<void> {
  await runs.silence(thread.sandboxId, thread.id)
  await writeWhenFree(db, () => deleteThread(db, thread.id))
}

const isVisible = ({ token }: Caller, thread: Thread) =>
  token?.userId === undefined || thread.externalUserId === token.userId
