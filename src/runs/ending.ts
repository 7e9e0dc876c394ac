import type { Database } from 'bun:sqlite'
import { insertChunks } from '../db/chunks.ts'
import { appendReply, replaceReply } from '../db/messages.ts'
import { inTransaction } from '../db/open.ts'
import { holdQueue } from '../db/queued-messages.ts'
import { endRun, findLaterRun } from '../db/runs.ts'
import { touchSandbox } from '../db/sandboxes.ts'
import { endThread } from '../db/threads.ts'
import { settleReply } from '../db/waiting-replies.ts'
import type { Usage } from '../model/run.ts'
import type { Chunk, RunMetadata } from '../stream/chunk.ts'
import type { Ending } from '../stream/ending.ts'
import type { MessageBuilder } from '../stream/message.ts'
import type { Writer } from '../stream/writer.ts'

/** The state of a run at its end. */
export interface EndingRun {
  id: string
  threadId: string
  sandboxId: string
  model: string
  usage: Usage
  durationMs: number
  chunks: number
  writer: Writer
  message: MessageBuilder
  /** The id of the reply. `goesOn`: it is in the thread already. */
  messageId: string
  goesOn: boolean
  /** It was given answers, and did nothing with them yet: it can be run again. */
  isUnbegun?: boolean
  /** An earlier reply of the thread whose answers this run was given. */
  answers?: string | undefined
}

/** Everything that a run's end changes. It is made once; storing it may take several tries. */
export interface PreparedEnding {
  /** The chunks that are stored with the end, the closing ones last. */
  chunks: string[]
  status: Ending['status']
  store(db: Database): void
}

/**
 * Closes the run's stream and message. `pending`: chunks that are not stored yet. A run that the server's end interrupts waits
 * on when it has asked something, or has done nothing yet with what was answered.
 */
export function prepareEnding(run: EndingRun, asked: Ending, pending: readonly Chunk[] = []): PreparedEnding {
  for (const chunk of pending) run.message.apply(chunk)
  const messageId = run.message.isEmpty ? undefined : run.messageId
  const ending: Ending =
    asked.status === 'interrupted' && (run.writer.waitingCalls.length > 0 || run.isUnbegun)
      ? { status: 'waiting', lostText: asked.errorText }
      : asked
  const metadata = toMetadata(run, ending, messageId)
  const closing = run.writer.close(ending, metadata)
  for (const chunk of closing) run.message.apply(chunk)
  const parts = run.message.parts()
  const chunks = [...pending, ...closing].map(chunk => JSON.stringify(chunk))
  const error = 'errorText' in ending ? ending.errorText : null
  return {
    chunks,
    status: ending.status,
    store: db =>
      inTransaction(db, () => {
        insertChunks(db, run.id, run.chunks + 1, chunks)
        if (messageId !== undefined) {
          const reply = { id: messageId, runId: run.id, parts, metadata }
          if (run.goesOn) replaceReply(db, run.threadId, reply)
          else appendReply(db, run.threadId, reply)
        }
        if (ending.status !== 'waiting') settleReply(db, run)
        if (ending.status !== 'interrupted' && run.answers !== undefined)
          settleReply(db, { threadId: run.threadId, messageId: run.answers })
        endRun(db, run.id, { status: ending.status, error, durationMs: run.durationMs })
        // A thread that went on without this run has the status of its later run.
        if (!findLaterRun(db, run)) {
          endThread(db, run.threadId, { status: 'errorText' in ending ? 'error' : ending.status, error })
          // What was said for after a reply that did not come may no longer be meant.
          if (ending.status !== 'completed' && ending.status !== 'waiting') holdQueue(db, run.threadId, true)
        }
        touchSandbox(db, run.sandboxId)
      }),
  }
}

// Clients read the first five; their order is the contract's.
const toMetadata = (
  { id, threadId, sandboxId, model, usage, durationMs }: EndingRun,
  { status }: Ending,
  messageId: string | undefined,
): RunMetadata => ({
  sessionId: threadId,
  totalCostUsd: usage.costUsd,
  inputTokens: usage.inputTokens,
  outputTokens: usage.outputTokens,
  durationMs,
  sandboxId,
  threadId,
  runId: id,
  ...(messageId !== undefined && { messageId }),
  totalTokens: usage.inputTokens + usage.outputTokens,
  model,
  // A partial reply must not look complete to a later reader of the thread.
  ...(status !== 'completed' && { status }),
})
