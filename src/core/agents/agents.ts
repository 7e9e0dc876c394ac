import { excerpt } from '../../bounds.ts'
import { agentEnv, findAgent, listAgents, removeAgent, saveAgent, setAgentVariable } from '../../db/agents.ts'
import { findDeployment, listDeployments } from '../../db/deployments.ts'
import { inTransaction } from '../../db/open.ts'
import { ApiError } from '../../errors.ts'
import type { Agent } from '../../model/agent.ts'
import type { Deployment, DeploymentSummary } from '../../model/deployment.ts'
import { assertAgent, assertKey, type Caller } from '../access/caller.ts'
import { keepChange, keepEnd } from '../access/keep-change.ts'
import type { Runtime } from '../runtime.ts'
import { assertMayChangeBindings } from '../secrets/bind.ts'
import { logAgent } from './agent-log.ts'
import { removeUnusedBundles } from './bundles.ts'
import { withOperatorChoices } from './operator-choices.ts'
import { definitionOf, grantedLimits, pinToActive } from './versions.ts'

const MAX_VARIABLES = 200

/** An agent with its versions, newest first, and the one of them that it is now. */
export interface VersionedAgent {
  agent: Agent
  deployments: DeploymentSummary[]
  active: DeploymentSummary | undefined
}

/** Throws agent_not_found, or forbidden for a token of other agents. */
export function getAgent({ db }: Runtime, caller: Caller, slug: string): Agent {
  assertAgent(caller, slug)
  const agent = findAgent(db, caller.teamId, slug)
  if (!agent) throw new ApiError('agent_not_found', `There is no agent ${JSON.stringify(excerpt(slug))}.`)
  return agent
}

/** Throws forbidden for a token. */
export function listVersionedAgents({ db }: Runtime, caller: Caller): VersionedAgent[] {
  assertKey(caller, 'manage agents')
  return listAgents(db, caller.teamId).map(agent => toVersioned(agent, listDeployments(db, agent.id)))
}

/** Throws agent_not_found, and forbidden for a token. */
export function getVersionedAgent(runtime: Runtime, caller: Caller, slug: string): VersionedAgent {
  assertKey(caller, 'manage agents')
  const agent = getAgent(runtime, caller, slug)
  return toVersioned(agent, listDeployments(runtime.db, agent.id))
}

const toVersioned = (agent: Agent, deployments: DeploymentSummary[]): VersionedAgent => ({
  agent,
  deployments,
  active: deployments.find(({ id }) => id === agent.deploymentId),
})

/** With its versions, variables and logs. Its sandboxes stay. */
export async function deleteAgent(runtime: Runtime, caller: Caller, slug: string): Promise<void> {
  keepEnd(runtime, caller, () => {
    const { agent } = getVersionedAgent(runtime, caller, slug)
    removeAgent(runtime.db, caller.teamId, slug)
    return { action: 'agent.removed', target: { agentId: agent.id, agent: slug } }
  })
  await removeUnusedBundles(runtime)
}

/** Makes an agent what one of its versions was; without a number, what it was before. Throws not_found, conflict. */
export function rollBackAgent(runtime: Runtime, caller: Caller, slug: string, version: number | undefined): Deployment {
  const { db } = runtime
  return inTransaction(db, () => {
    const { agent, deployments, active } = getVersionedAgent(runtime, caller, slug)
    const earlier = deployments.find(each => active === undefined || each.version < active.version)
    const chosen = version === undefined ? earlier : deployments.find(each => each.version === version)
    const target = chosen && findDeployment(db, chosen.id)
    if (!target && version !== undefined) throw new ApiError('not_found', `${slug} has no version ${version}.`)
    if (!target) throw new ApiError('conflict', `${slug} has no earlier version.`)
    assertMayChangeBindings(caller, agent.secrets, target.definition.secrets)
    pinToActive(db, caller.teamId, slug)
    saveAgent(db, caller.teamId, {
      ...definitionOf(withOperatorChoices(target.definition, agent)),
      ...grantedLimits(agent),
      ...{ slug, deploymentId: target.id },
    })
    logAgent(db, agent.id, { source: 'deploy', level: 'info', text: `${slug} is back at version ${target.version}.` })
    const about = { agentId: agent.id, agent: slug, deploymentId: target.id }
    keepChange(runtime, caller, { action: 'agent.rolled-back', target: about, detail: { version: target.version } })
    return target
  })
}

/** Lists the names of an agent's variables. */
export function listVariables(runtime: Runtime, caller: Caller, slug: string): string[] {
  return Object.keys(agentEnv(runtime.db, getVersionedAgent(runtime, caller, slug).agent.id)).sort()
}

/** Sets a variable of new sandboxes, or removes it when there is no value. Returns the names of all variables after it. */
export function setVariable(
  runtime: Runtime,
  caller: Caller,
  slug: string,
  { key, value }: { key: string; value?: string },
): string[] {
  const { db } = runtime
  const names = listVariables(runtime, caller, slug)
  if (value !== undefined && !names.includes(key) && names.length >= MAX_VARIABLES) {
    throw new ApiError('conflict', `${slug} has ${MAX_VARIABLES} variables, and can have no more.`)
  }
  const change = () => {
    const { agent } = getVersionedAgent(runtime, caller, slug)
    setAgentVariable(db, agent.id, key, value)
    const text = `The variable ${key} was ${value === undefined ? 'taken away' : 'set'}.`
    logAgent(db, agent.id, { source: 'deploy', level: 'info', text })
    const action = value === undefined ? 'variable.removed' : 'variable.set'
    return { action, target: { agentId: agent.id, agent: slug, name: key } }
  }
  if (value === undefined) keepEnd(runtime, caller, change)
  else inTransaction(db, () => keepChange(runtime, caller, change()))
  return listVariables(runtime, caller, slug)
}
