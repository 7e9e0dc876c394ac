import type { Database } from 'bun:sqlite'
import { agentEnv, findAgent } from '../../db/agents.ts'
import { listStrays, settleEnvironment } from '../../db/environments.ts'
import { newId } from '../../db/id.ts'
import { inTransaction } from '../../db/open.ts'
import { insertSandbox } from '../../db/sandboxes.ts'
import { findTeam } from '../../db/teams.ts'
import { ApiError } from '../../errors.ts'
import type { Sandbox } from '../../model/sandbox.ts'
import { narrowNetwork } from './networks.ts'
import { DEFAULT_CWD } from './set-up.ts'

/**
 * Gives an environment that has no sandbox a new one of this agent, as the agent is now. A running server sees it at once.
 * Throws not_found, agent_not_found.
 */
export function adoptStray(db: Database, { id, team, slug }: { id: string; team: string; slug: string }): Sandbox {
  return inTransaction(db, () => {
    const stray = listStrays(db).find(({ environmentId }) => environmentId === id)
    if (!stray) throw new ApiError('not_found', `There is no stray environment ${id}.`)
    const teamId = findTeam(db, team)?.id
    const agent = teamId === undefined ? undefined : findAgent(db, teamId, slug)
    if (teamId === undefined || !agent)
      throw new ApiError('agent_not_found', `The team ${team} has no agent ${JSON.stringify(slug)}.`)
    settleEnvironment(db, id)
    return insertSandbox(db, {
      id: newId('sbx'),
      teamId,
      agentSlug: agent.slug,
      agentName: agent.name,
      environmentId: id,
      backend: stray.backend,
      status: 'active',
      envs: { ...agent.sandbox.envs, ...agentEnv(db, agent.id) },
      cwd: agent.sandbox.cwd ?? DEFAULT_CWD,
      network: narrowNetwork({ teamId }, agent.options, {}),
    })
  })
}
