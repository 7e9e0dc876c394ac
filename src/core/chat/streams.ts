import { listThreadsWithQueue } from '../../db/queued-messages.ts'
import { findRun } from '../../db/runs.ts'
import { listWaitingThreads } from '../../db/threads.ts'
import { ApiError } from '../../errors.ts'
import type { Sandbox } from '../../model/sandbox.ts'
import type { Watched } from '../../runs/registry.ts'
import type { Receipt } from '../../runs/run.ts'
import { parseLastEventId } from '../../stream/frame.ts'
import type { Caller } from '../access/caller.ts'
import { getAgent } from '../agents/agents.ts'
import { stopQueues } from '../queue/queue.ts'
import type { Runtime } from '../runtime.ts'
import { cancelWaiting } from './cancel-waiting.ts'
import { actAs, findPlace, findSandbox, placeholderName } from './conversations.ts'
import { isVisibleThread } from './threads.ts'

/** How a request names a stream. */
export interface StreamName {
  /** A sandbox, a thread, or a client's own name for a conversation. */
  name: string
  /** A thread, or a client's own name for one; in the sandbox that `name` or `sandboxId` names. */
  threadId?: string
  sandboxId?: string
  externalUserId?: string
}

interface Stream {
  caller: Caller
  sandbox: Sandbox
  /** Absent: all threads of the sandbox that the caller may see. */
  threadId?: string
  /** Where the client's own conversation is: its run comes before others of the sandbox. */
  ownThreadId?: string
}

/**
 * What a stream's name leads to; undefined for one that leads nowhere, or not yet: a client may ask before its first
 * message. Throws agent_not_found, thread_not_found for a thread of a sandbox that is there, and forbidden for a token of
 * other agents.
 */
export function findStream(
  runtime: Runtime,
  caller: Caller,
  agentSlug: string,
  { name, threadId, sandboxId, externalUserId }: StreamName,
): Stream | undefined {
  getAgent(runtime, caller, agentSlug)
  const acting = actAs(caller, externalUserId)
  const asked = sandboxId === undefined ? undefined : findSandbox(runtime, caller, sandboxId)
  if (sandboxId !== undefined && !asked) return undefined
  const named = asked ? undefined : findSandbox(runtime, acting, name)
  if (threadId === undefined && name === placeholderName(agentSlug)) return undefined
  const place = findPlace(runtime, { caller, acting, agentSlug, name: threadId ?? name }, asked ?? named)
  if (named && threadId === undefined) {
    return { caller: acting, sandbox: named, ...(place && { ownThreadId: place.thread.id }) }
  }
  if (place) return { caller: acting, sandbox: place.sandbox, threadId: place.thread.id }
  if (named) throw new ApiError('thread_not_found', 'There is no such thread.')
  return undefined
}

/** Finds a stream that is to be ended, as `findStream` does. Throws sandbox_not_found for a name that leads nowhere. */
export function getStream(runtime: Runtime, caller: Caller, agentSlug: string, names: StreamName): Stream | undefined {
  const stream = findStream(runtime, caller, agentSlug, names)
  if (stream || names.name === placeholderName(agentSlug)) return stream
  throw new ApiError('sandbox_not_found', 'There is no such sandbox.')
}

/** The youngest active run of the stream, or the run that `lastEventId` names. */
export function resumeStream(
  runtime: Runtime,
  { caller, sandbox, threadId, ownThreadId }: Stream,
  lastEventId: string | null,
): Watched | undefined {
  const own = ownThreadId === undefined ? [] : [ownThreadId]
  const { runId } = parseLastEventId(lastEventId) ?? {}
  const ended = runId === undefined ? undefined : findRun(runtime.db, runId)?.threadId
  const others = ended === undefined ? [] : [ended]
  for (const each of [...own, ...threadIds(runtime, caller, sandbox, { threadId, others })]) {
    const watched = runtime.runs.resume(sandbox.id, { threadId: each, lastEventId })
    if (watched) return watched
  }
  return undefined
}

/**
 * Cancels every active run of the stream, and what waits for answers there, and stops the queues, or deletes them. Resolves
 * when the runs have ended.
 */
export async function cancelStream(
  runtime: Runtime,
  { caller, sandbox, threadId }: Stream,
  queue: 'keep' | 'drop',
): Promise<{ runs: Receipt[]; isCancelled: boolean }> {
  const withQueue = listThreadsWithQueue(runtime.db, sandbox.id)
  const others = [...withQueue, ...listWaitingThreads(runtime.db, sandbox.id)]
  const threads = threadIds(runtime, caller, sandbox, { threadId, others })
  const stopped = threads.includes(undefined) ? withQueue : withQueue.filter(id => threads.includes(id))
  const stopping = async () => stopQueues(runtime, stopped, queue)
  // The runs are cancelled even when the database cannot store that the queue stops.
  const [held, ...ended] = await Promise.allSettled([
    stopping(),
    ...threads.map(each => runtime.runs.cancel(sandbox.id, each)),
  ])
  const runs = ended.flatMap(each => (each.status === 'fulfilled' ? each.value : []))
  for (const each of [held, ...ended]) if (each.status === 'rejected') throw each.reason
  const waiting = cancelWaiting(runtime, sandbox.id, threads)
  return { runs, isCancelled: runs.length > 0 || waiting.length > 0 }
}

/**
 * Lists the ids of the given thread, or of all threads when it is undefined: those with a run first, youngest first, then the
 * others that an end user may see.
 */
function threadIds(
  runtime: Runtime,
  caller: Caller,
  sandbox: Sandbox,
  { threadId, others }: { threadId: string | undefined; others: readonly string[] },
): (string | undefined)[] {
  if (threadId !== undefined || caller.token?.userId === undefined) return [threadId]
  const running = runtime.runs.active(sandbox.id).map(run => run.threadId)
  return [...new Set([...running, ...others])].filter(id => isVisibleThread(runtime, caller, sandbox, id))
}
