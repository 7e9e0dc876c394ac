import type { Database } from 'bun:sqlite'
import { writeWhenFree } from '../db/busy.ts'
import { insertModelCall } from '../db/model-calls.ts'
import { roundUsd } from '../db/usd.ts'
import { messageOf } from '../errors.ts'
import type { EngineEvent } from '../plugin-api/index.ts'
import type { Outcome } from './model-call.ts'
import type { Prices } from './prices.ts'
import type { Provider } from './providers.ts'
import type { GatewayRun } from './run.ts'

/** What calls used, in the form in which a run takes it. */
export type CallUsage = Omit<Extract<EngineEvent, { type: 'usage' }>, 'type'>

/** Counts and stores what one run's calls used. */
export interface Recorder {
  /** Counts a call at once. Resolves when it is stored; a failure to store it is logged. */
  record(outcome: Outcome, startedAt: string, durationMs: number): Promise<void>
  /** What calls have used since the last take; undefined when none has ended since. */
  takeUsage(): CallUsage | undefined
}

export function createRecorder(
  { db, prices }: { db: Database; prices: Prices },
  run: GatewayRun,
  { provider, modelId }: { provider: Provider; modelId: string },
  log: (line: string) => void,
): Recorder {
  const { budgets: _, inside: __, model, ...spender } = run
  let pending: CallUsage | undefined
  return {
    async record({ status, usage }, startedAt, durationMs) {
      const costUsd = prices.costUsd(provider, modelId, usage)
      pending = {
        model,
        inputTokens: (pending?.inputTokens ?? 0) + usage.inputTokens,
        outputTokens: (pending?.outputTokens ?? 0) + usage.outputTokens,
        costUsd: roundUsd((pending?.costUsd ?? 0) + costUsd),
      }
      try {
        const call = { ...spender, provider: provider.name, model: modelId, status, costUsd, startedAt, durationMs }
        await writeWhenFree(db, () => insertModelCall(db, { ...call, ...usage }))
      } catch (error) {
        log(`a model call could not be stored: ${messageOf(error)}`)
      }
    },
    takeUsage() {
      const usage = pending
      pending = undefined
      return usage
    },
  }
}
