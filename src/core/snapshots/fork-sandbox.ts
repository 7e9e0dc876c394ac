import { createLimit } from '../../async/limit.ts'
import { findThread } from '../../db/threads.ts'
import { ApiError, messageOf } from '../../errors.ts'
import type { Sandbox } from '../../model/sandbox.ts'
import type { Snapshot } from '../../model/snapshot.ts'
import type { Thread } from '../../model/thread.ts'
import { assertKey, type Caller } from '../access/caller.ts'
import { copyThread, positionOf } from '../chat/fork.ts'
import type { Runtime } from '../runtime.ts'
import { getSandbox, removeSandbox } from '../sandboxes/sandboxes.ts'
import { copySandbox } from './create-from-snapshot.ts'
import { discardSnapshot, takeSnapshot } from './take-snapshot.ts'

/** How many forks are made at once. */
const MADE_AT_ONCE = 8

export interface ForkRequest {
  /** 1 to 100; default 1. */
  count?: number
  /** A thread of the sandbox that is copied into each fork. */
  threadId?: string
  /** The last message of the copies; by default the last one stored. */
  messageId?: string
  /** Time to live of the forks since their last use; null for none. By default that of the sandbox. */
  timeoutMs?: number | null
  /** Added to the sandbox's own variables. */
  envs?: Record<string, string>
  /** Stores what belongs to a fork, in the transaction that stores the fork itself. */
  store?(fork: Sandbox): void
}

/** A fork, or the error that prevented it. */
export type Fork = { sandbox: Sandbox; thread?: Thread } | { error: ApiError }

export interface Forks extends Pick<Snapshot, 'frozenMs'> {
  /** How the forks' disks were made. */
  method: Snapshot['forkMethod']
  forks: Fork[]
}

/**
 * Makes sandboxes from one moment of another, which goes on. They have its files, limits, variables, rules and tools, and none of
 * its processes. Single forks may fail; when all do, this throws the first one's error. Throws as `createSnapshot` does, and
 * invalid_request for a thread or message that does not exist. After an abort no fork is left.
 */
export async function forkSandbox(
  runtime: Runtime,
  caller: Caller,
  sandboxId: string,
  { count = 1, threadId, messageId, ...request }: ForkRequest = {},
  signal?: AbortSignal,
): Promise<Forks> {
  const { db } = runtime
  const sandbox = getSandbox(runtime, caller, sandboxId)
  assertKey(caller, 'fork a sandbox')
  const thread = findForkedThread(runtime, sandbox, threadId, messageId)
  const snapshot = await takeSnapshot(runtime, caller, sandboxId, { state: 'forking' }, signal)
  const inTurn = createLimit(MADE_AT_ONCE)
  const makeFork = async (): Promise<Fork> => {
    let copy: Thread | undefined
    const store = (fork: Sandbox) => {
      if (thread) copy = copyThread(db, thread, { sandboxId: fork.id, ...(messageId !== undefined && { messageId }) })
      request.store?.(fork)
    }
    signal?.throwIfAborted()
    const made = await copySandbox(runtime, caller, snapshot, { ...request, store }, { ...(signal && { signal }) })
    return { sandbox: made, ...(copy && { thread: copy }) }
  }
  try {
    const forks = await Promise.all(
      Array.from({ length: count }, () =>
        inTurn(makeFork).catch((error): Fork => {
          if (error instanceof ApiError) return { error }
          if (!signal?.aborted) runtime.log(`a fork of ${sandboxId}: ${messageOf(error)}`, 'error')
          return { error: new ApiError('internal_error', 'The fork could not be made.') }
        }),
      ),
    )
    if (signal?.aborted) {
      for (const fork of forks) if ('sandbox' in fork) await removeSandbox(runtime, fork.sandbox)
      signal.throwIfAborted()
    }
    const [first] = forks
    if (first && 'error' in first && forks.every(fork => 'error' in fork)) throw first.error
    return { frozenMs: snapshot.frozenMs, method: snapshot.forkMethod, forks }
  } finally {
    await discardSnapshot(runtime, snapshot.id)
  }
}

function findForkedThread(
  { db }: Runtime,
  sandbox: Sandbox,
  threadId: string | undefined,
  messageId: string | undefined,
): Thread | undefined {
  if (threadId === undefined) {
    if (messageId === undefined) return undefined
    throw new ApiError('invalid_request', 'messageId: of which thread? threadId is missing', { field: 'messageId' })
  }
  const thread = findThread(db, sandbox.id, threadId)
  if (!thread) throw new ApiError('thread_not_found', 'There is no such thread in the sandbox.')
  if (messageId !== undefined) positionOf(db, thread, messageId)
  return thread
}
