import type { Database } from 'bun:sqlite'
import { writeWhenFree } from '../db/busy.ts'
import { insertEvent } from '../db/events.ts'
import { insertModelCall } from '../db/model-calls.ts'
import { inTransaction } from '../db/open.ts'
import { roundUsd } from '../db/usd.ts'
import { messageOf } from '../errors.ts'
import type { Observe } from '../model/observation.ts'
import type { EngineEvent } from '../plugin-api/index.ts'
import type { BudgetSpender, Budgets, ReachedBudget } from './budgets.ts'
import type { Outcome } from './model-call.ts'
import type { Prices } from './prices.ts'
import type { Provider } from './providers.ts'
import type { GatewayRun } from './run.ts'

/** What calls used, in the form in which a run takes it. */
export type CallUsage = Omit<Extract<EngineEvent, { type: 'usage' }>, 'type'>

/** The call's time and API. */
export interface TimedCall {
  callId: string
  wire: string
  startedAt: string
  /** The time by `performance.now()`. */
  startedAtMs: number
}

/** Counts and stores what one run's calls used. */
export interface Recorder {
  /** Counts a call that ends now, at once. Resolves when it is stored; a failure to store it is logged. */
  record(outcome: Outcome, call: TimedCall): Promise<void>
  /** What calls have used since the last take; undefined when none has ended since. */
  takeUsage(): CallUsage | undefined
}

export function createRecorder(
  { db, prices, budgets, observe }: { db: Database; prices: Prices; budgets: Budgets; observe: Observe },
  run: GatewayRun,
  { provider, modelId }: { provider: Provider; modelId: string },
  log: (line: string) => void,
): Recorder {
  const { budgets: limits, inside: _, model, ...spender } = run
  let pending: CallUsage | undefined
  return {
    async record({ status, usage, firstChunkAtMs }, { callId, wire, startedAt, startedAtMs }) {
      const durationMs = Math.round(performance.now() - startedAtMs)
      const costUsd = prices.costUsd(provider, modelId, usage)
      pending = {
        model,
        inputTokens: (pending?.inputTokens ?? 0) + usage.inputTokens,
        outputTokens: (pending?.outputTokens ?? 0) + usage.outputTokens,
        costUsd: roundUsd((pending?.costUsd ?? 0) + costUsd),
      }
      const call = { ...spender, provider: provider.name, model: modelId, status, costUsd, startedAt, durationMs }
      const first = firstChunkAtMs !== undefined && { firstChunkMs: firstChunkAtMs - startedAtMs }
      observe({ type: 'model-call.ended', callId, wire, ...call, ...usage, ...first })
      try {
        await writeWhenFree(db, () =>
          inTransaction(db, () => {
            insertModelCall(db, callId, { ...call, ...usage })
            for (const reached of budgets.findReached(spender, limits, costUsd)) storeReached(db, spender, reached)
          }),
        )
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

/** Only the operator may know how much the whole server has spent. */
function storeReached(db: Database, spender: BudgetSpender, { owner, limitUsd, spentUsd }: ReachedBudget): void {
  const { agentSlug: agent, sandboxId, threadId, runId, keyId } = spender
  const ids = { sandboxId, threadId, runId, agent, ...(owner === 'key' && { keyId: keyId ?? null }) }
  const data = { budget: owner, ...ids, ...(owner !== 'server' && { limitUsd, spentUsd }) }
  insertEvent(db, { type: 'budget.reached', sandboxId, threadId, data })
}
