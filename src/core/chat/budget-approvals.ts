import type { Database } from 'bun:sqlite'
import { sumRaises } from '../../db/approvals.ts'
import type { RunBudgets } from '../../gateway/budgets.ts'
import type { Approval } from '../../model/approval.ts'
import type { Sandbox } from '../../model/sandbox.ts'
import type { RunEvent } from '../../stream/run-event.ts'

/** The call by which a run asks whether it may spend more. No model knows the id of its run. */
export const toBudgetCallId = (runId: string): string => `budget-${runId}`

/** The budgets of a run, with what people have approved for its sandbox and its agent. A run's own budget begins anew. */
export function withRaises(db: Database, budgets: RunBudgets, { id, teamId, agentSlug }: Sandbox): RunBudgets {
  const { maxSandboxBudgetUsd, maxAgentBudgetUsd } = budgets
  return {
    ...budgets,
    ...(maxSandboxBudgetUsd !== undefined && {
      maxSandboxBudgetUsd: maxSandboxBudgetUsd + sumRaises(db, 'maxSandboxBudgetUsd', { teamId, sandboxId: id }),
    }),
    ...(maxAgentBudgetUsd !== undefined && {
      maxAgentBudgetUsd: maxAgentBudgetUsd + sumRaises(db, 'maxAgentBudgetUsd', { teamId, agentSlug }),
    }),
  }
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
