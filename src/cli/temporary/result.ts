import { messageOf } from '../../errors.ts'
import type { Chunk } from '../../stream/chunk.ts'

/** The last line of `run --json`: everything that a job needs to know about the reply. */
export interface RunResult {
  type: 'result'
  /** The reply's whole text. */
  text: string
  /** `null` when the run ended before its usage was known. */
  usage: { inputTokens: number; outputTokens: number; totalTokens: number; durationMs: number } | null
  /** US dollars. */
  costUsd: number | null
  /** The code that the command exits with. */
  exitCode: number
  /** Why the reply or threadbox itself failed. */
  error?: string
}

/** Collects the result of a run from its chunks. */
export function collectResult() {
  let text = ''
  let error: string | undefined
  let usage: RunResult['usage'] = null
  let costUsd: number | null = null
  return {
    add(chunk: Chunk): void {
      if (chunk.type === 'text-delta') text += chunk.delta
      else if (chunk.type === 'error') error = chunk.errorText
      else if (chunk.type === 'message-metadata') {
        const { inputTokens, outputTokens, totalTokens, durationMs, totalCostUsd } = chunk.messageMetadata
        usage = { inputTokens, outputTokens, totalTokens, durationMs }
        costUsd = totalCostUsd
      }
    },
    /** `failure` is the error that threadbox itself failed with. */
    end(exitCode: number, failure?: unknown): RunResult {
      const why = failure === undefined ? error : messageOf(failure)
      return { type: 'result', text, usage, costUsd, exitCode, ...(why !== undefined && { error: why }) }
    },
  }
}
