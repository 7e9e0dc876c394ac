import type { Database } from 'bun:sqlite'
import { sumRaises } from '../../db/approvals.ts'
import { type RunBudgets, runBudgetNames } from '../../gateway/budgets.ts'
import type { Approval } from '../../model/approval.ts'
import type { Sandbox } from '../../model/sandbox.ts'
import type { RunEvent } from '../../stream/run-event.ts'

/** The call by which a run asks whether it may spend more. No model knows the id of its run. */
export const toBudgetCallId = (runId: string): string => `budget-${runId}`

/**
 * The budgets of a run, with what people have approved for its turn, its sandbox and its agent. `replyId`: of a reply that the run
 * goes on with.
 */
export function withRaises(
  db: Database,
  budgets: RunBudgets,
  { id: sandboxId, teamId, agentSlug }: Sandbox,
  replyId: string | undefined,
): RunBudgets {
  const scopes = {
    maxBudgetUsd: { sandboxId, messageId: replyId ?? '' },
    maxSandboxBudgetUsd: { sandboxId },
    maxAgentBudgetUsd: { agentSlug },
  }
  const raised: RunBudgets = { ...budgets }
  for (const budget of runBudgetNames) {
    const usd = budgets[budget]
    if (usd !== undefined) raised[budget] = usd + sumRaises(db, budget, { teamId, ...scopes[budget] })
  }
  return raised
}

/** The results of the calls by which runs asked for more, for the stream of the run that goes on. */
export const toBudgetResults = (approvals: readonly Approval[]): RunEvent[] =>
  approvals.flatMap(({ kind, status, toolCallId: callId }) =>
    kind === 'budget' && status === 'approved' ? [{ type: 'tool-result', callId, output: 'approved' } as const] : [],
  )

/** Why a reply cannot go on: somebody has denied it more money, or nobody has answered. */
export function findBudgetDenial(approvals: readonly Approval[]): string | undefined {
  const denied = approvals.find(
    ({ kind, status }) => kind === 'budget' && (status === 'denied' || status === 'expired'),
  )
  return denied && `budget_exceeded: ${denied.reason ?? 'The budget is used up.'} More was not approved.`
}
