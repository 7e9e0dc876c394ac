import type { Database } from 'bun:sqlite'
import { cutBranch, listBranches, showBranch } from '../../db/branches.ts'
import { writeWhenFree } from '../../db/busy.ts'
import { mustLast } from '../../db/lasting.ts'
import { findAfter, findPlace, type MessageOwner } from '../../db/messages.ts'
import { inTransaction } from '../../db/open.ts'
import { clearEngineSession, findThread, touchThread } from '../../db/threads.ts'
import { ApiError } from '../../errors.ts'
import type { Branch, Fork } from '../../model/branch.ts'
import type { Thread } from '../../model/thread.ts'
import type { Runtime } from '../runtime.ts'
import { takeBackCalls } from './leave-calls.ts'

/** What a thread keeps beside what it shows. */
const KEPT = { branches: 100, bytes: 64 * 1024 * 1024 }

/** A part of a path: messages of one owner, from its first to a position. */
export interface Stretch {
  owner: MessageOwner
  until: number
}

/** The conversation of a branch, or the one that a thread shows, from its first message to its last. */
export interface Path {
  stretches: Stretch[]
  /** Of messages, by their ids. */
  forks: ReadonlyMap<string, Fork>
}

/** Throws branch_not_found when the thread has no such branch. */
export function findPath(db: Database, threadId: string, branchId: string | undefined): Path {
  const all = listBranches(db, threadId)
  const chain = branchId === undefined ? [] : chainTo(all, branchId)
  const owners = [threadId, ...chain.map(({ id }) => ({ branchId: id }))]
  const stretches = owners.map((owner, index) => {
    const next = chain[index]
    return { owner, until: next ? positionOf(db, owner, next.afterMessageId) : Number.MAX_SAFE_INTEGER }
  })
  const active = all.find(({ isActive }) => isActive)
  const forks = active ? findForks(db, stretches, [active, ...chain], all) : new Map()
  return { stretches, forks }
}

/** All branches of a thread, oldest first: also those that no message tells of, as when a new reply has no word yet. */
export const describeBranches = ({ db }: Runtime, { id }: Thread) =>
  listBranches(db, id).map(({ first, ...branch }) => ({ ...branch, firstMessageId: first?.id ?? null }))

/** Keeps a message and those after it as a branch, and forgets the engine's session: it then gets the conversation from the thread. */
export function cutThread(db: Database, id: string, firstMessageId: string | undefined): void {
  if (firstMessageId !== undefined) cutBranch(db, id, firstMessageId, KEPT)
  clearEngineSession(db, id)
}

/**
 * Makes a thread show another of its branches and go on there. Throws run_active while it has a run, conflict while it waits
 * for answers, and branch_not_found when it has no such branch.
 */
export const switchBranch = ({ db, runs }: Runtime, { id, sandboxId }: Thread, branchId: string): Promise<void> =>
  writeWhenFree(db, () =>
    inTransaction(db, () => {
      if (runs.activeOn(id)) {
        throw new ApiError('run_active', 'This thread has a reply under way. Wait for it, or cancel it.')
      }
      const path = chainTo(listBranches(db, id), branchId)
      if (path.length === 0) return
      // Its answers would find no reply to go on with.
      if (findThread(db, sandboxId, id)?.status === 'waiting')
        throw new ApiError('conflict', 'A reply of this thread waits for answers: give them, or send a message, first.')
      // A person may still be asked by a reply that the thread has gone on without.
      takeBackCalls(db, id, findAfter(db, id, positionOf(db, id, path[0]?.afterMessageId ?? null))?.id)
      mustLast(db)
      showBranch(db, id, path)
      clearEngineSession(db, id)
      touchThread(db, id)
    }),
  )

/** Returns the branches that lead from what is shown to a branch, which is the last; none for the one that is shown. */
function chainTo(all: readonly Branch[], branchId: string): Branch[] {
  const chain: Branch[] = []
  for (let id: string | null = branchId; id !== null; ) {
    const branch = all.find(each => each.id === id)
    if (!branch) throw new ApiError('branch_not_found', 'This thread has no such branch.')
    if (branch.isActive) return chain
    chain.unshift(branch)
    id = branch.parentId
  }
  return chain
}

const positionOf = (db: Database, owner: MessageOwner, messageId: string | null): number =>
  messageId === null ? 0 : (findPlace(db, owner, messageId)?.position ?? 0)

/** Finds the messages of a path in whose place other branches have others. `owners` are the branches of its stretches. */
function findForks(
  db: Database,
  stretches: readonly Stretch[],
  owners: readonly Branch[],
  all: readonly Branch[],
): Map<string, Fork> {
  const forks = new Map<string, Fork>()
  for (const [index, { owner, until }] of stretches.entries()) {
    const own = owners[index]
    const parentId = own && !own.isActive ? own.id : null
    const hanging = all.filter(branch => !branch.isActive && branch.parentId === parentId)
    for (const [afterId, others] of Map.groupBy(hanging, ({ afterMessageId }) => afterMessageId)) {
      const place = positionOf(db, owner, afterId)
      if (!own || place > until) continue
      const first = findAfter(db, owner, place) ?? null
      const shown = place === until ? owners[index + 1] : own
      const here = [{ id: own.id, first }, ...others].flatMap(({ id, first }) => (first ? [{ id, first }] : []))
      const message = here.find(({ id }) => id === shown?.id)
      if (!shown || !message || here.length < 2) continue
      here.sort((one, other) => compare(one.first.createdAt, other.first.createdAt) || compare(one.id, other.id))
      forks.set(message.first.id, { branch: shown.id, branches: here.map(({ id }) => id) })
    }
  }
  return forks
}

const compare = (one: string, other: string): number => (one < other ? -1 : Number(one > other))
