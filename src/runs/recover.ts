import type { Database } from 'bun:sqlite'
import { listChunks } from '../db/chunks.ts'
import { newId } from '../db/id.ts'
import { findMessage } from '../db/messages.ts'
import { usageOfRun } from '../db/model-calls.ts'
import { saveRunUsage } from '../db/runs.ts'
import type { RunRecord } from '../model/run.ts'
import { rebuild } from '../stream/rebuild.ts'
import { prepareEnding } from './ending.ts'

/**
 * Ends a run that a stopped server left active. Its stored reply is kept, at its place in the thread. `lostSeqs`: how many
 * chunk numbers to skip before the end.
 */
export function recoverRun(db: Database, row: RunRecord, lostSeqs: number): void {
  let chunks = 0
  let hasBegun = false
  function* log(): Generator<string> {
    for (;;) {
      const rows = listChunks(db, row.id, chunks, 1024 * 1024)
      if (rows.length === 0) return
      for (const { seq, chunk } of rows) {
        chunks = seq
        hasBegun ||= !opening.test(chunk)
        yield chunk
      }
    }
  }
  const messageId = row.messageId ?? newId('msg')
  const begun = findMessage(db, row.threadId, messageId)
  const rebuilt = rebuild(log(), begun?.parts)
  const { inputTokens, outputTokens, costUsd } = row
  const model = row.model ?? 'unknown'
  // A model call may have been stored before its run counted it.
  const usage = usageOfRun(db, row.id) ?? { inputTokens, outputTokens, costUsd }
  saveRunUsage(db, row.id, model, usage)
  const run = {
    ...rebuilt,
    id: row.id,
    messageId,
    goesOn: begun !== undefined,
    isUnbegun: begun !== undefined && !hasBegun,
    threadId: row.threadId,
    sandboxId: row.sandboxId,
    model,
    usage,
    durationMs: Math.max(0, Date.now() - Date.parse(row.startedAt)),
    chunks: chunks + lostSeqs,
  }
  prepareEnding(run, { status: 'interrupted', errorText: 'The server stopped during this reply.' }).store(db)
}

/** The chunks that begin a run: its start and the answers that it was given. The output of a tool that the server ran is not an answer. */
const opening =
  /^\{"type":"(?:start"|tool-approval-response"|tool-output-denied"|tool-output-(?:available|error)"(?!.*"providerExecuted":true\}$))/
