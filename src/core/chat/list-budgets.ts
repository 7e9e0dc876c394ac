import { listAgents } from '../../db/agents.ts'
import { sumRaises } from '../../db/approvals.ts'
import { listTeamKeys } from '../../db/keys.ts'
import { listTopSpenders, spentUsd } from '../../db/model-calls.ts'
import { getTeamName } from '../../db/teams.ts'
import type { Budget } from '../../model/budget.ts'
import { assertKey, type Caller } from '../access/caller.ts'
import { DEFAULT_TEAM } from '../access/teams.ts'
import type { Runtime } from '../runtime.ts'

/** How many sandboxes of an agent, and how many threads, are listed: those that have spent most. */
const MOST_OF_A_KIND = 10

/**
 * Lists the budgets that apply to the team's calls, with what is spent of each; for sandboxes and threads only those that have
 * spent most. The server's own budget is listed for the operator's keys alone, and the limits of single chats and runs are not
 * listed. Throws forbidden for a token.
 */
export async function listBudgets(runtime: Runtime, caller: Caller): Promise<Budget[]> {
  assertKey(caller, 'see budgets')
  return [
    ...dayBudgets(runtime, caller),
    ...(await agentBudgets(runtime, caller)),
    ...(await threadBudgets(runtime, caller)),
  ]
}

/** In the calls, null stands for a key that is not in the database. */
function dayBudgets({ db, config }: Runtime, { teamId }: Caller): Budget[] {
  const { dayUsd, keyDayUsd } = config.models.budgets
  const from = new Date().toISOString().slice(0, 10)
  const budgets: Budget[] = []
  if (dayUsd && getTeamName(db, teamId) === DEFAULT_TEAM)
    budgets.push({ ...ownerOf('server', null, null), limitUsd: dayUsd, spentUsd: spentUsd(db, { from }) })
  if (!keyDayUsd) return budgets
  const valid = listTeamKeys(db, teamId).filter(
    ({ revokedAt, expiresAt }) => !revokedAt && !(expiresAt && expiresAt < from),
  )
  for (const { id, name } of [...valid, { id: null, name: null }]) {
    const spent = spentUsd(db, { teamId, keyId: id, from })
    if (id !== null || spent > 0) budgets.push({ ...ownerOf('key', id, name), limitUsd: keyDayUsd, spentUsd: spent })
  }
  return budgets
}

async function agentBudgets({ db }: Runtime, { teamId }: Caller): Promise<Budget[]> {
  const budgets: Budget[] = []
  for (const { slug: agentSlug, name, options } of listAgents(db, teamId)) {
    const { maxAgentBudgetUsd, maxSandboxBudgetUsd } = options
    const raised = (budget: string, scope: { agentSlug?: string; sandboxId?: string }) =>
      sumRaises(db, budget, { teamId, ...scope })
    if (maxAgentBudgetUsd !== undefined) {
      const limitUsd = maxAgentBudgetUsd + raised('maxAgentBudgetUsd', { agentSlug })
      budgets.push({ ...ownerOf('agent', agentSlug, name), limitUsd, spentUsd: spentUsd(db, { teamId, agentSlug }) })
    }
    if (maxSandboxBudgetUsd === undefined) continue
    for (const { id, costUsd } of await listTopSpenders(db, 'sandbox', { teamId, agentSlug, limit: MOST_OF_A_KIND })) {
      const limitUsd = maxSandboxBudgetUsd + raised('maxSandboxBudgetUsd', { sandboxId: id })
      budgets.push({ ...ownerOf('sandbox', id, name), limitUsd, spentUsd: costUsd })
    }
  }
  return budgets
}

async function threadBudgets({ db, config }: Runtime, { teamId }: Caller): Promise<Budget[]> {
  const { threadUsd } = config.models.budgets
  if (!threadUsd) return []
  const found = await listTopSpenders(db, 'thread', { teamId, limit: MOST_OF_A_KIND })
  return found.map(({ id, name, sandboxId, costUsd }) => ({
    ...ownerOf('thread', id, name),
    ...{ sandboxId, limitUsd: threadUsd, spentUsd: costUsd },
  }))
}

const ownerOf = (kind: Budget['kind'], id: string | null, name: string | null) => ({ kind, id, name, sandboxId: null })
