import { isBusy, writeWhenFree } from '../../db/busy.ts'
import { findPlace } from '../../db/messages.ts'
import { inTransaction } from '../../db/open.ts'
import { deleteQueued, firstQueued, holdQueue, listThreadsWithQueue } from '../../db/queued-messages.ts'
import { findSandbox } from '../../db/sandboxes.ts'
import { findOwner, findThread } from '../../db/threads.ts'
import { ApiError, messageOf } from '../../errors.ts'
import type { QueuedMessage } from '../../model/queued-message.ts'
import type { Sandbox } from '../../model/sandbox.ts'
import type { Thread } from '../../model/thread.ts'
import { objectOf } from '../../read/json.ts'
import { getAgent } from '../agents/agents.ts'
import type { Runtime } from '../runtime.ts'
import { startRun } from './chat.ts'
import type { ChatRequest } from './chat-request.ts'
import { continueDue } from './continue.ts'
import { chooseAgent } from './start-turn.ts'
import { failWith } from './turn-events.ts'

/** Lets a thread go on whose run is over. Never throws. */
export function onFree(runtime: Runtime, threadId: string): void {
  runtime.steerings.find(threadId)?.close()
  continueDue(runtime, threadId)
  runNext(runtime, threadId)
}

/** Lets the queues go on that nothing holds: at the start, and after a failure to start a run. Never throws. */
export function runQueues(runtime: Runtime): void {
  try {
    for (const threadId of listThreadsWithQueue(runtime.db)) runNext(runtime, threadId)
  } catch (error) {
    runtime.log(`queues: ${messageOf(error)}`, 'error')
  }
}

/** Lets a thread's queue go on after a turn that did not complete. */
export function resumeQueue(runtime: Runtime, thread: Thread): void {
  holdQueue(runtime.db, thread.id, false)
  runNext(runtime, thread.id)
}

/**
 * Starts the run of a thread's first queued message, when the thread is free and nothing holds its queue. Never throws: a run
 * that cannot be started is tried again later.
 */
export function runNext(runtime: Runtime, threadId: string): void {
  try {
    startNext(runtime, threadId)
  } catch (error) {
    if (isBusy(error)) void writeWhenFree(runtime.db, () => startNext(runtime, threadId)).catch(report)
    else report(error)
  }

  function report(error: unknown): void {
    if (error instanceof ApiError && error.code === 'shutting_down') return
    runtime.log(`${threadId}: its queue could not go on: ${messageOf(error)}`, 'error')
  }
}

function startNext(runtime: Runtime, threadId: string): void {
  const { db, runs } = runtime
  const next = firstQueued(db, threadId)
  if (!next || next.isHeld || runs.activeOn(threadId)) return
  inTransaction(db, () => {
    const owner = findOwner(db, threadId)
    const sandbox = owner && findSandbox(db, owner.teamId, owner.sandboxId)
    const thread = sandbox && findThread(db, sandbox.id, threadId)
    if (!thread || thread.status === 'waiting') return
    deleteQueued(db, threadId, next.id)
    startQueued(runtime, sandbox, thread, next)
  })
}

/** A message whose agent cannot answer any more gets a run that fails. */
function startQueued(runtime: Runtime, sandbox: Sandbox, thread: Thread, queued: QueuedMessage): void {
  const { db, runs } = runtime
  // A part of it may have steered a run that did not get the rest.
  const messages = queued.messages.filter(({ id }) => findPlace(db, thread.id, id) === undefined)
  if (messages.length === 0) return
  const { agentSlug, keyId, request } = queued
  const asked = { before: [], prompt: messages, isAgain: false }
  // No reader waits for it: nobody may take its place for that.
  const chat = { ...toChat(request), messages, ownIds: new Set<string>(), background: true }
  try {
    const current = getAgent(runtime, { teamId: sandbox.teamId }, agentSlug)
    const runner = chooseAgent(runtime, current, sandbox)
    startRun(runtime, { ...runner, sandbox, thread, ...(keyId !== undefined && { keyId }) }, asked, chat)
  } catch (error) {
    if (!(error instanceof ApiError) || error.code === 'shutting_down') throw error
    const { id: sandboxId, teamId } = sandbox
    const init = { threadId: thread.id, sandboxId, teamId, agentSlug, engine: agentSlug, background: true, messages }
    runs.start(init, () => failWith(error.code, error.message))
  }
}

/** Reads what `enqueueChat` has stored. */
const toChat = (request: QueuedMessage['request']): Omit<ChatRequest, 'messages' | 'background'> => ({
  ...request,
  options: objectOf(request.options) ?? {},
})
