import type { Database } from 'bun:sqlite'
import { insertChunks } from '../db/chunks.ts'
import { appendReply } from '../db/messages.ts'
import { inTransaction } from '../db/open.ts'
import { endRun, findLaterRun, type Usage } from '../db/runs.ts'
import { touchSandbox } from '../db/sandboxes.ts'
import { endThread } from '../db/threads.ts'
import type { Chunk, RunMetadata } from '../stream/chunk.ts'
import type { MessageBuilder } from '../stream/message.ts'
import type { Ending, Writer } from '../stream/writer.ts'

/** A run at its end. */
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
}

/** All that a run's end changes, made once: it may have to be stored more than once before it is. */
export interface PreparedEnding {
  /** The chunks that are stored with it, the closing ones last. */
  chunks: string[]
  store(db: Database): void
}

/** Closes the run's stream and message. `pending`: chunks of the writer's that are not stored yet. */
export function prepareEnding(run: EndingRun, ending: Ending, pending: readonly Chunk[] = []): PreparedEnding {
  const metadata = metadataOf(run)
  const closing = [...pending, ...run.writer.close(ending, metadata)]
  for (const chunk of closing) run.message.apply(chunk)
  const parts = run.message.parts()
  const chunks = closing.map(chunk => JSON.stringify(chunk))
  const error = 'errorText' in ending ? ending.errorText : null
  return {
    chunks,
    store: db =>
      inTransaction(db, () => {
        insertChunks(db, run.id, run.chunks + 1, chunks)
        if (parts.length > 0) appendReply(db, run.threadId, { runId: run.id, parts, metadata })
        endRun(db, run.id, { status: ending.status, error, durationMs: run.durationMs })
        // A thread that went on without this run has the status of its later one.
        if (!findLaterRun(db, run)) {
          endThread(db, run.threadId, { status: 'errorText' in ending ? 'error' : ending.status, error })
        }
        touchSandbox(db, run.sandboxId)
      }),
  }
}

// Clients read the first five; their order is the contract's.
const metadataOf = ({ id, threadId, sandboxId, model, usage, durationMs }: EndingRun): RunMetadata => ({
  sessionId: threadId,
  totalCostUsd: usage.costUsd,
  inputTokens: usage.inputTokens,
  outputTokens: usage.outputTokens,
  durationMs,
  sandboxId,
  threadId,
  runId: id,
  totalTokens: usage.inputTokens + usage.outputTokens,
  model,
})
