import { findClientCall } from '../../db/client-calls.ts'
import { inTransaction } from '../../db/open.ts'
import { ApiError } from '../../errors.ts'
import type { ClientAnswer } from '../../model/client-call.ts'
import type { Thread } from '../../model/thread.ts'
import { type Caller, causeOf } from '../access/caller.ts'
import { storeOutput } from '../chat/answers.ts'
import { continueReply } from '../chat/continue.ts'
import type { Runtime } from '../runtime.ts'

/**
 * Stores what the client's tool gave. `running`: it was the last that the reply waits for, and the reply goes on in the
 * background; both are one transaction. Throws call_not_found, and already_answered.
 */
export async function giveToolResult(
  runtime: Runtime,
  caller: Caller,
  thread: Thread,
  toolCallId: string,
  answer: ClientAnswer,
): Promise<{ sandboxId: string; threadId: string; status: 'running' | 'waiting' }> {
  await runtime.diskSpace.assertEnough()
  const { db } = runtime
  return inTransaction(db, () => {
    const call = findClientCall(db, thread.id, toolCallId)
    if (!call) throw new ApiError('call_not_found', 'There is no such call of a tool of the client.')
    if (!storeOutput(db, call, answer)) {
      throw new ApiError('already_answered', `This call is ${call.status} already.`)
    }
    const run = continueReply(runtime, call, { background: true, cause: causeOf(caller) })
    return { sandboxId: thread.sandboxId, threadId: thread.id, status: run ? 'running' : 'waiting' }
  })
}
