import type { Database } from 'bun:sqlite'
import { listConversations, saveConversation } from '../../db/conversations.ts'
import { findSandboxOfThread } from '../../db/threads.ts'
import { ApiError } from '../../errors.ts'
import type { Conversation, ConversationName } from '../../model/conversation.ts'
import type { Sandbox } from '../../model/sandbox.ts'
import type { Thread } from '../../model/thread.ts'
import type { Caller } from '../access/caller.ts'
import type { Runtime } from '../runtime.ts'
import { getSandbox } from '../sandboxes/sandboxes.ts'
import { getThread } from './threads.ts'

/**
 * Clients name a conversation before they know where it takes place: a chat's `id` in the AI SDK. The name belongs to
 * the caller's team, the end user and the agent. It leads to a thread until that is deleted.
 */

export interface Place {
  sandbox: Sandbox
  thread: Thread
}

/** A name, and the caller that uses it. */
export interface Named {
  caller: Caller
  /** The caller, as the end user that it acts for. */
  acting: Caller
  agentSlug: string
  name: string
}

/** What clients send while they know no sandbox. It names nothing: many chats share it. */
export const placeholderName = (slug: string): string => `sandbox-${slug}`

/** A key's request for an end user reaches what a token of that user would. */
export const actAs = (caller: Caller, externalUserId: string | undefined): Caller =>
  externalUserId === undefined || caller.token?.userId !== undefined
    ? caller
    : { ...caller, token: { ...caller.token, userId: externalUserId } }

const toConversationName = ({ teamId, token }: Caller, agentSlug: string, name: string): ConversationName => ({
  teamId,
  agentSlug,
  name,
  ...(token?.userId !== undefined && { userId: token.userId }),
})

/** A sandbox that the caller may see; undefined when there is none. Throws forbidden for a token of other agents. */
export const findSandbox = (runtime: Runtime, caller: Caller, id: string): Sandbox | undefined =>
  unlessMissing(() => getSandbox(runtime, caller, id))

/**
 * Where a name leads: to the thread of this id, else to the thread that the client calls so. `sandbox`: only there; null:
 * only where the conversation has a sandbox of its own; undefined: the one that was used last.
 */
export function findPlace(runtime: Runtime, { caller, acting, agentSlug, name }: Named, sandbox?: Sandbox | null) {
  // What a key has given a name may be a thread that its end user must not see: that counts as missing.
  const placeIn = (sandboxId: string, threadId: string): Place | undefined =>
    unlessMissing(() => {
      const found = sandboxId === sandbox?.id ? sandbox : getSandbox(runtime, caller, sandboxId)
      return { sandbox: found, thread: getThread(runtime, acting, found, threadId) }
    })
  const sandboxId = sandbox?.id ?? findSandboxOfThread(runtime.db, caller.teamId, name)
  const direct = sandboxId === undefined ? undefined : placeIn(sandboxId, name)
  if (direct) return direct
  const named = listConversations(runtime.db, toConversationName(acting, agentSlug, name))
  for (const each of sandbox === undefined ? named : fitting(named, sandbox?.id ?? null)) {
    const place = placeIn(each.sandboxId, each.threadId)
    if (place) return place
  }
  return undefined
}

/** Of an asked sandbox come first those that were begun so: a client may have learnt since which one its conversation has. */
const fitting = (named: readonly Conversation[], askedId: string | null): Conversation[] => [
  ...named.filter(({ askedSandboxId }) => askedSandboxId === askedId),
  ...named.filter(({ askedSandboxId, sandboxId }) => askedSandboxId === null && sandboxId === askedId),
]

function unlessMissing<Found>(get: () => Found): Found | undefined {
  try {
    return get()
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined
    throw error
  }
}

/** Keeps where a name leads. */
export const keepPlace = (
  { db }: Runtime,
  { acting, agentSlug, name }: Named,
  { thread }: Place,
  askedSandboxId: string | null,
): void => saveConversation(db, toConversationName(acting, agentSlug, name), { askedSandboxId, threadId: thread.id })

const tails = new WeakMap<Database, Map<string, Promise<void>>>()

/** Does the work for one name one after the other: two first messages at once belong to one conversation. */
export async function oneByOne<Result>(
  { db }: Runtime,
  { acting, agentSlug, name }: Named,
  work: () => Promise<Result>,
): Promise<Result> {
  const ofAll = tails.get(db) ?? new Map<string, Promise<void>>()
  tails.set(db, ofAll)
  const key = JSON.stringify(toConversationName(acting, agentSlug, name))
  const result = (ofAll.get(key) ?? Promise.resolve()).then(work)
  const tail = result.then(
    () => {},
    () => {},
  )
  ofAll.set(key, tail)
  try {
    return await result
  } finally {
    if (ofAll.get(key) === tail) ofAll.delete(key)
  }
}
