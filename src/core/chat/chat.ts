import { inTransaction } from '../../db/open.ts'
import { deleteQueued } from '../../db/queued-messages.ts'
import { findThread } from '../../db/threads.ts'
import { ApiError } from '../../errors.ts'
import type { Watched } from '../../runs/registry.ts'
import type { Run } from '../../runs/run.ts'
import { type Caller, causeOf } from '../access/caller.ts'
import { getAgent } from '../agents/agents.ts'
import { type Enqueued, isBusy } from '../queue/enqueue.ts'
import type { Runtime } from '../runtime.ts'
import { type Asked, findQuestion, type Identified, identify, type PostedMessage } from './asked.ts'
import { cutThread } from './branches.ts'
import { choosePlace, findKnownPlace } from './chat-place.ts'
import type { ChatRequest } from './chat-request.ts'
import { enqueueChat, findAnswered } from './enqueue-chat.ts'
import { leaveOpenCalls, takeBackCalls } from './leave-calls.ts'
import { planTurn } from './plan-turn.ts'
import { continuePosted, isContinuation, type WaitingChat } from './posted-answers.ts'
import type { RunPlace } from './run-request.ts'
import { chooseAgent, getEngine, startTurn } from './start-turn.ts'
import { giveTitle } from './title.ts'

/** A run, and its stream when it is no background run. */
export interface StartedChat {
  run: Run
  watched: Watched | undefined
}

/**
 * Starts a run that answers the last user message, or one that goes on with a reply that waited. It has a reader at once: no
 * other message can take its place. In a thread that is busy the message may wait, if it is to.
 */
export function startChat(
  runtime: Runtime,
  caller: Caller,
  slug: string,
  request: ChatRequest & { whenBusy?: 'reject'; messages: (PostedMessage & { role: 'user' })[] },
  signal: AbortSignal,
): Promise<StartedChat>
export function startChat(
  runtime: Runtime,
  caller: Caller,
  slug: string,
  request: ChatRequest,
  signal: AbortSignal,
): Promise<StartedChat | Enqueued | WaitingChat>
export async function startChat(
  runtime: Runtime,
  caller: Caller,
  slug: string,
  request: ChatRequest,
  signal: AbortSignal,
): Promise<StartedChat | Enqueued | WaitingChat> {
  const current = getAgent(runtime, caller, slug)
  getEngine(runtime, current)
  await runtime.diskSpace.assertEnough()
  const identified = identify(request)
  if (isContinuation(identified)) {
    const continued = continuePosted(runtime, caller, slug, identified)
    return 'id' in continued ? watched(runtime, request, continued) : continued
  }
  const asked = findQuestion(identified)
  assertRoomForRun(runtime, caller, slug, request)
  const { sandbox, thread } = await choosePlace(runtime, caller, slug, request, signal)
  const { id, sandboxId } = thread
  if (request.whenBusy === undefined || request.whenBusy === 'reject') {
    while (runtime.runs.activeOn(id)) await runtime.runs.supersede(id)
  } else {
    if (isBusy(runtime, thread)) return enqueueChat(runtime, caller, slug, thread, asked, identified)
    const answered = findAnswered(runtime, thread, asked)
    if (answered) return answered
  }
  const { agent, engine } = chooseAgent(runtime, current, sandbox)
  // Looked up again: it may have been deleted, or got its engine's session, while its run was ended.
  const free = findThread(runtime.db, sandboxId, id)
  if (!free) throw new ApiError('thread_not_found', 'There is no such thread.')
  const who = { ...(caller.keyId && { keyId: caller.keyId }), cause: causeOf(caller) }
  const place: RunPlace = { agent, engine, sandbox, thread: free, ...who }
  const slot = runtime.limits.open('runs', caller, caller.token?.userId ?? request.externalUserId)
  try {
    const run = startRun(runtime, { ...place, slot }, asked, identified)
    return watched(runtime, request, run)
  } catch (error) {
    slot[Symbol.dispose]()
    throw error
  }
}

/**
 * Throws rate_limit_exceeded for a run that has no room, before a sandbox is made for it. When the thread exists already, a
 * reached limit is no error here, because this run may take the place of another.
 */
function assertRoomForRun(runtime: Runtime, caller: Caller, slug: string, request: ChatRequest): void {
  try {
    runtime.limits.open('runs', caller, caller.token?.userId ?? request.externalUserId)[Symbol.dispose]()
  } catch (error) {
    if (!findKnownPlace(runtime, caller, slug, request)) throw error
  }
}

const watched = (runtime: Runtime, { background }: ChatRequest, run: Run): StartedChat => ({
  run,
  watched: background ? undefined : runtime.runs.watch(run),
})

/** Takes a thread that is free. Nothing is awaited between the look and the taking. */
export const startRun = (runtime: Runtime, place: RunPlace, asked: Asked, chat: ChatRequest & Identified): Run =>
  inTransaction(runtime.db, () => {
    const { db } = runtime
    const { id } = place.thread
    const { prompt, messages, cut, ...plan } = planTurn(db, id, asked, chat)
    if (cut) {
      takeBackCalls(db, id, cut.from)
      cutThread(db, id, cut.from)
    }
    const history = leaveOpenCalls(db, id, plan.history)
    giveTitle(db, place.thread, messages)
    // It may have waited, and be sent anew.
    for (const { id: promptId } of prompt) deleteQueued(db, id, promptId)
    const { background, options } = chat
    const request = { options, ...(place.keyId !== undefined && { keyId: place.keyId }) }
    return startTurn(runtime, place, request, {
      turn: { prompt, history },
      keepsSession: !cut,
      init: { background, messages },
    })
  })
