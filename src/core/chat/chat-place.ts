import { whenFree } from '../../db/busy.ts'
import { inTransaction } from '../../db/open.ts'
import { ApiError } from '../../errors.ts'
import type { Sandbox } from '../../model/sandbox.ts'
import type { Caller } from '../access/caller.ts'
import type { Runtime } from '../runtime.ts'
import { createSandbox, getSandbox } from '../sandboxes/sandboxes.ts'
import { actAs, findPlace, findSandbox, keepPlace, oneByOne, type Place, placeholderName } from './conversations.ts'
import { createThread, getThread } from './threads.ts'

/** The fields of a chat that decide where it takes place. */
export interface PlaceRequest {
  sandboxId?: string
  threadId?: string
  /** The client's own name for the conversation. */
  id?: string
  /** The name of a new thread. */
  name?: string
  externalUserId?: string
}

/**
 * Where a chat takes place, by the contract's four rules. With an `id` it goes on where the conversation of this name is,
 * unless a thread is named; the rules then hold for its first message.
 */
export async function choosePlace(
  runtime: Runtime,
  caller: Caller,
  agentSlug: string,
  request: PlaceRequest,
  signal: AbortSignal,
): Promise<Place> {
  const { sandboxId, threadId, id = '', externalUserId } = request
  if (threadId !== undefined && sandboxId === undefined) {
    throw new ApiError('invalid_request', 'threadId: requires sandboxId', { field: 'threadId' })
  }
  const asked = sandboxId === undefined ? undefined : getSandbox(runtime, caller, sandboxId)
  const hasName = id !== '' && id !== placeholderName(agentSlug)
  const named = { caller, acting: actAs(caller, externalUserId), agentSlug, name: id }
  if (asked && threadId !== undefined) {
    const place = { sandbox: asked, thread: getThread(runtime, caller, asked, threadId) }
    if (hasName && !isOwnId(place, id)) keepPlace(runtime, named, place, asked.id)
    return place
  }
  const makeIn = async (found: Sandbox | undefined): Promise<Sandbox> => {
    if (found) return found
    const wanted = { agent: agentSlug, ...(externalUserId !== undefined && { externalUserId }) }
    const sandbox = await createSandbox(runtime, caller, wanted, signal)
    await whenFree(runtime.db)
    return sandbox
  }
  if (!hasName) {
    const sandbox = await makeIn(asked)
    return { sandbox, thread: createThread(runtime, caller, sandbox, request) }
  }
  return oneByOne(runtime, named, async () => {
    signal.throwIfAborted()
    const there = asked ?? findSandbox(runtime, named.acting, id)
    const known = findPlace(runtime, named, there ?? null)
    if (known?.thread.id === id) return known
    const sandbox = known?.sandbox ?? (await makeIn(there))
    return inTransaction(runtime.db, () => {
      const place = known ?? { sandbox, thread: createThread(runtime, caller, sandbox, request) }
      keepPlace(runtime, named, place, there?.id ?? null)
      return place
    })
  })
}

/** Where a chat goes on that has to be there already, by the same rules. Undefined: nowhere. */
export function findKnownPlace(
  runtime: Runtime,
  caller: Caller,
  agentSlug: string,
  { sandboxId, threadId, id = '', externalUserId }: PlaceRequest,
): Place | undefined {
  const asked = sandboxId === undefined ? undefined : getSandbox(runtime, caller, sandboxId)
  if (asked && threadId !== undefined) return { sandbox: asked, thread: getThread(runtime, caller, asked, threadId) }
  if (id === '' || id === placeholderName(agentSlug)) return undefined
  const acting = actAs(caller, externalUserId)
  const there = asked ?? findSandbox(runtime, acting, id)
  return findPlace(runtime, { caller, acting, agentSlug, name: id }, there ?? null)
}

const isOwnId = ({ sandbox, thread }: Place, id: string): boolean =>
  [sandbox.id, sandbox.environmentId, thread.id].includes(id)
