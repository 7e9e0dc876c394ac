import type { Database } from 'bun:sqlite'
import { isBusy, writeWhenFree } from '../../db/busy.ts'
import { findAfter, findMessage, findPlace, lastMessages, lastQuestion, setParts } from '../../db/messages.ts'
import { inTransaction } from '../../db/open.ts'
import { findSandbox } from '../../db/sandboxes.ts'
import { endThread, findThread } from '../../db/threads.ts'
import {
  countTry,
  findWaitingReply,
  hasOpenCalls,
  listDueReplies,
  listWaitingReplies,
  settleReply,
} from '../../db/waiting-replies.ts'
import { ApiError, messageOf } from '../../errors.ts'
import type { Cause } from '../../model/observation.ts'
import type { WaitingReply } from '../../model/waiting-reply.ts'
import type { StoredMessage } from '../../plugin-api/index.ts'
import { describeFault } from '../../runs/fault.ts'
import type { Run } from '../../runs/run.ts'
import { getAgent } from '../agents/agents.ts'
import type { Runtime } from '../runtime.ts'
import { findOpenAnswers, showAnswers, toCallAnswers, toOpening, withAnswers, withoutAnswers } from './answers.ts'
import { findBudgetDenial, toBudgetResults } from './budget-approvals.ts'
import { closed } from './call-parts.ts'
import { HISTORY } from './plan-turn.ts'
import type { RunPlace, RunRequest, RunWork } from './run-request.ts'
import { chooseAgent, startTurn } from './start-turn.ts'
import { type ChatOptions, strictestOptions } from './turn-options.ts'

/** How the run that goes on differs from the one that asked. */
export interface ContinueOptions {
  background: boolean
  options?: ChatOptions
  keyId?: string | undefined
  cause?: Cause
}

/** A run that ends the server, or comes to nothing, would be started again for ever. */
const MAX_TRIES = 5

type ReplyKey = Pick<WaitingReply, 'threadId' | 'messageId'>

/**
 * Starts the run that goes on with a reply when nothing of it waits for an answer any more. Undefined when something does,
 * when the thread is busy (its end comes back here), and when nothing is left to be done.
 */
export const continueReply = (runtime: Runtime, key: ReplyKey, change: ContinueOptions): Run | undefined =>
  inTransaction(runtime.db, () => {
    const { db, runs } = runtime
    const waiting = findWaitingReply(db, key)
    if (!waiting || runs.activeOn(key.threadId) || hasOpenCalls(db, key)) return undefined
    const work = planContinuation(db, waiting, change.background)
    if (!work) {
      settleReply(db, key)
      const isOver = listWaitingReplies(db, key.threadId).length === 0
      if (isOver && findThread(db, waiting.sandboxId, key.threadId)?.status === 'waiting')
        endThread(db, key.threadId, { status: 'completed', error: null })
      return undefined
    }
    if (countTry(db, key) > MAX_TRIES) {
      failReply(db, key, `The agent could not go on: ${MAX_TRIES} runs ended before they began what was approved.`)
      return undefined
    }
    try {
      // Written by this server, by `startTurn`.
      const asked = waiting.request as RunRequest
      const place = findRunPlace(runtime, waiting, asked)
      const keyId = change.keyId ?? asked.keyId
      const request = {
        options: strictestOptions(asked.options, change.options),
        ...(keyId !== undefined && { keyId }),
      }
      return startTurn(runtime, { ...place, ...(change.cause && { cause: change.cause }) }, request, work)
    } catch (error) {
      if (!(error instanceof ApiError) || error.code === 'shutting_down') throw error
      failReply(db, key, error.message)
      return undefined
    }
  })

/** Undefined when the reply is gone, or when its answers need nothing to be done. */
function planContinuation(db: Database, key: WaitingReply, background: boolean): RunWork | undefined {
  const { threadId, messageId } = key
  const reply = findMessage(db, threadId, messageId)
  const place = findPlace(db, threadId, messageId)
  if (!reply || !place) return undefined
  const open = findOpenAnswers(db, key)
  const before = withoutAnswers(reply.parts, open)
  const after = withAnswers(reply.parts, open)
  const answers = toCallAnswers(reply.parts, open)
  const raises = toBudgetResults(open.approvals)
  const failure = findBudgetDenial(open.approvals)
  if (answers.length === 0 && raises.length === 0 && failure === undefined) return undefined
  const isLate = findAfter(db, threadId, place.position) !== undefined
  // Nobody waits for the refusal of a call that the conversation has left behind.
  if (isLate && !answers.some(({ type }) => type === 'approved')) return undefined
  setParts(db, threadId, messageId, after)
  const continues = { reply: { id: messageId, role: reply.role, parts: after }, answers, isLate }
  if (isLate) {
    const turn = { prompt: [], history: listHistory(db, threadId), continues }
    return { turn, keepsSession: true, init: { background, answers: messageId } }
  }
  const question = lastQuestion(db, threadId, place.position)
  const { position = place.position, ...prompt } = question ?? {}
  const turn = {
    prompt: 'id' in prompt ? [prompt] : [],
    history: listHistory(db, threadId, position),
    continues,
  }
  const asked = { id: messageId, role: reply.role, parts: before }
  return {
    turn,
    keepsSession: true,
    init: { background, reply: asked, opening: [...toOpening(open), ...raises] },
    ...(failure !== undefined && { failure }),
  }
}

const listHistory = (db: Database, threadId: string, before?: number): StoredMessage[] =>
  lastMessages(db, threadId, HISTORY, before).map(({ id, role, parts }) => ({ id, role, parts }))

/** Throws an ApiError when something of it is gone. */
function findRunPlace(
  runtime: Runtime,
  { teamId, sandboxId, threadId }: WaitingReply,
  { agentSlug }: RunRequest,
): RunPlace {
  const sandbox = findSandbox(runtime.db, teamId, sandboxId)
  const thread = findThread(runtime.db, sandboxId, threadId)
  if (!sandbox || !thread) throw new ApiError('thread_not_found', 'There is no such thread.')
  const agent = getAgent(runtime, { teamId }, agentSlug ?? sandbox.agentSlug)
  return { ...chooseAgent(runtime, agent, sandbox), sandbox, thread }
}

/** Ends a reply that cannot go on, as when its agent was deleted. */
function failReply(db: Database, key: ReplyKey, error: string): void {
  const reply = findMessage(db, key.threadId, key.messageId)
  if (reply) setParts(db, key.threadId, key.messageId, closed(reply.parts, error))
  settleReply(db, key)
  endThread(db, key.threadId, { status: 'error', error })
}

/** Lets what waits for nothing any more go on: in one thread whose run is over, or in all. Never throws. */
export function continueDue(runtime: Runtime, threadId?: string): void {
  try {
    if (threadId !== undefined)
      for (const reply of listWaitingReplies(runtime.db, threadId)) showAnswers(runtime.db, reply)
    for (const reply of listDueReplies(runtime.db, threadId)) continueOne(runtime, reply)
  } catch (error) {
    runtime.log(`replies that wait: ${describeFault(error)}`, 'error')
  }
}

/** A run that cannot be started is tried again later. */
function continueOne(runtime: Runtime, reply: WaitingReply): void {
  const start = () => continueReply(runtime, reply, { background: true })
  try {
    start()
  } catch (error) {
    if (isBusy(error)) void writeWhenFree(runtime.db, start).catch(report)
    else report(error)
  }

  function report(error: unknown): void {
    if (error instanceof ApiError && error.code === 'shutting_down') return
    runtime.log(`${reply.threadId}: its reply could not go on: ${messageOf(error)}`, 'error')
  }
}
