import { findThreads as find } from '../../db/find-threads.ts'
import { findSandbox } from '../../db/sandboxes.ts'
import type { FoundThread, Thread } from '../../model/thread.ts'
import type { Caller } from '../access/caller.ts'
import type { Runtime } from '../runtime.ts'

export interface ThreadQuery {
  limit: number
  before?: string
  /** The slug of the sandbox's agent. */
  agent?: string
  /** A sandbox's id, or its environment's. */
  sandboxId?: string
  userId?: string
  status?: Thread['status']
  /** Words that one message has. */
  q?: string
}

/** More words than that narrow nothing. */
const MAX_WORDS = 32

/** A page of the threads that the caller may see, of all sandboxes, newest first. */
export async function findThreads(
  { db }: Runtime,
  { teamId, token }: Caller,
  { agent, sandboxId, userId, status, q, limit, before }: ThreadQuery,
): Promise<{ threads: FoundThread[]; nextBefore: string | null }> {
  const sandbox = sandboxId === undefined ? undefined : findSandbox(db, teamId, sandboxId)
  const agents = agent === undefined ? token?.agents : [agent].filter(slug => token?.agents?.includes(slug) ?? true)
  const words = q === undefined || q.trim() === '' ? undefined : toWords(q)
  const isNobodys = token?.userId !== undefined && userId !== undefined && token.userId !== userId
  const isNothing = agents?.length === 0 || words?.length === 0 || (sandboxId !== undefined && !sandbox) || isNobodys
  if (isNothing) return { threads: [], nextBefore: null }
  const owner = token?.userId ?? userId
  const found = await find(db, {
    teamId,
    limit: limit + 1,
    ...(before !== undefined && { before }),
    ...(agents && { agents }),
    ...(sandbox && { sandboxId: sandbox.id }),
    ...(owner !== undefined && { userId: owner }),
    ...(token?.userId !== undefined && { isOwn: true }),
    ...(status !== undefined && { status }),
    ...(words && { words }),
  })
  const threads = found.slice(0, limit)
  return { threads, nextBefore: found.length > limit ? (threads.at(-1)?.id ?? null) : null }
}

/** The words of a query, without what is no part of a word. */
const toWords = (query: string): string[] =>
  [...new Set(query.split(/[^\p{L}\p{M}\p{N}]+/u).filter(word => word !== ''))].slice(0, MAX_WORDS)
