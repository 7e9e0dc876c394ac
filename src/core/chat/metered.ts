import { explainRefusal, type RunBudgets } from '../../gateway/budgets.ts'
import type { EngineEnd, EngineEvent } from '../../plugin-api/index.ts'
import type { LazySession } from './lazy-session.ts'
import type { TurnEvents } from './turn-events.ts'

/** The call by which the server asks whether a run may spend more. No model makes it. */
export const BUDGET_TOOL = 'Budget'

/** How a turn asks for more money. */
export interface BudgetQuestion {
  callId: string
  /** As they are without what was approved: approved, a turn goes on with as much more. */
  budgets: RunBudgets
}

/**
 * Passes a turn on with what its model calls use among its events: the gateway's own count, as soon as it is known, also
 * when the turn is cancelled or throws. After `signal` no call goes on. A turn fails when a budget has refused it a call,
 * or asks the question when that is given and the budget is one that can be raised.
 */
export async function* metered(
  events: TurnEvents,
  model: LazySession,
  signal: AbortSignal,
  question?: BudgetQuestion,
): TurnEvents {
  const usage = (): EngineEvent[] => {
    const used = model.takeUsage()
    return used ? [{ type: 'usage', ...used }] : []
  }
  const comesBeforeAbort = watchAbort(signal)
  let isAborted = false
  try {
    for (;;) {
      const next = events.next()
      // An engine may take its time to end, or never do so: its calls are over, and counted, at once.
      if (!isAborted && !(await comesBeforeAbort(next))) {
        isAborted = true
        await model.close()
        yield* usage()
      }
      const step = await next
      if (step.done) {
        await model.close()
        yield* usage()
        return yield* refused(step.value, model, question)
      }
      yield* usage()
      // The gateway has counted what the engine says here.
      if (step.value.type !== 'usage' || !model.isOpen) yield step.value
    }
  } catch (error) {
    await model.close()
    yield* usage()
    throw error
  } finally {
    await model.close()
    await events.return({ status: 'cancelled' })
  }
}

/**
 * Returns a function that tells whether a promise settles before the abort. A race with one long-lived promise would keep
 * something of every event until that settles.
 */
function watchAbort(signal: AbortSignal): (next: Promise<unknown>) => Promise<boolean> {
  let wake = () => {}
  signal.addEventListener('abort', () => wake(), { once: true })
  return next =>
    new Promise<boolean>(resolve => {
      wake = () => resolve(false)
      if (signal.aborted) wake()
      const settled = () => resolve(true)
      next.then(settled, settled)
    })
}

function* refused(
  end: EngineEnd,
  { refusal }: LazySession,
  question: BudgetQuestion | undefined,
): Generator<EngineEvent, EngineEnd> {
  if (!refusal || end.status === 'cancelled') return end
  const { budget, limitUsd, spentUsd, reason } = refusal
  const moreUsd = budget && question?.budgets[budget]
  if (!question || !budget || !moreUsd) {
    return { status: 'failed', error: { code: 'budget_exceeded', message: explainRefusal(refusal) } }
  }
  const { callId } = question
  yield { type: 'tool-call', callId, name: BUDGET_TOOL, input: { budget, limitUsd, spentUsd, moreUsd } }
  yield { type: 'approval-request', callId, reason }
  return { status: 'waiting' }
}
