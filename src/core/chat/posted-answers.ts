import { inTransaction } from '../../db/open.ts'
import { ApiError } from '../../errors.ts'
import type { Run } from '../../runs/run.ts'
import { assertMayApprove, type Caller, causeOf } from '../access/caller.ts'
import type { Runtime } from '../runtime.ts'
import { findAnswers, storeDecision, storeOutput } from './answers.ts'
import { findQuestion, type Identified, type Posted } from './asked.ts'
import { findKnownPlace } from './chat-place.ts'
import type { ChatRequest } from './chat-request.ts'
import { continueReply } from './continue.ts'

/** Some calls of the reply still wait for their answer. */
export interface WaitingChat {
  sandboxId: string
  threadId: string
  status: 'waiting'
}

/** A chat whose last message is the agent's: its client has answered what the reply waits for, or wants nothing. */
export const isContinuation = ({ messages, trigger }: Posted): boolean =>
  trigger !== 'regenerate-message' && messages.at(-1)?.role === 'assistant'

/**
 * Takes the answers in a chat whose last message is the agent's, and starts the run that goes on when these were the last.
 * Both are one transaction: of two clients that answer at once, one starts a run. Throws nothing_to_continue when the
 * reply waits for none of it: such a client would pay for an old question again and again.
 */
export function continuePosted(
  runtime: Runtime,
  caller: Caller,
  slug: string,
  chat: ChatRequest & Identified,
): Run | WaitingChat {
  const { db } = runtime
  const { messages }: Identified = chat
  const reply = messages.at(-1)
  const place = findKnownPlace(runtime, caller, slug, chat)
  if (!reply || !place) return refuse(chat)
  const { id: threadId, sandboxId } = place.thread
  return inTransaction(db, () => {
    const answers = findAnswers(db, caller.teamId, threadId, reply)
    const [first] = answers
    if (!first) return refuse(chat)
    for (const answer of answers) if ('approval' in answer) assertMayApprove(caller, answer.approval)
    const answeredBy = caller.token?.userId ?? caller.keyId
    for (const answer of answers) {
      if ('call' in answer) storeOutput(db, answer.call, answer.answer)
      else storeDecision(db, answer.approval, { ...answer.decision, ...(answeredBy !== undefined && { answeredBy }) })
    }
    const { messageId } = 'call' in first ? first.call : first.approval
    const { background, options } = chat
    const change = { background, options, keyId: caller.keyId, cause: causeOf(caller) }
    const run = continueReply(runtime, { threadId, messageId }, change)
    return run ?? { sandboxId, threadId, status: 'waiting' }
  })
}

/** Throws invalid_request when there is no question either, and nothing_to_continue. */
function refuse(chat: Identified): never {
  findQuestion(chat)
  throw new ApiError(
    'nothing_to_continue',
    'messages: the last one is the agent’s, and waits for nothing: send a user message, or the trigger regenerate-message.',
  )
}
