import type { Database } from 'bun:sqlite'
import { isDeepStrictEqual } from 'node:util'
import { findAgent, saveAgent } from '../../db/agents.ts'
import { findVersion, insertDeployment, listDeployments } from '../../db/deployments.ts'
import { inTransaction } from '../../db/open.ts'
import { pinSandboxes } from '../../db/sandboxes.ts'
import type { Agent, AgentDefinition, AgentInput } from '../../model/agent.ts'
import type { Deployment, DeploymentInput, DeploymentSummary } from '../../model/deployment.ts'
import { logAgent } from './agent-log.ts'

/** What a version has besides its definition. */
export type VersionFiles = Pick<DeploymentInput, 'madeBy' | 'tools' | 'bundle' | 'template'>

/** Picks what an agent is from what it is stored with. */
export const definitionOf = ({
  name,
  engine,
  model,
  systemPrompt,
  options,
  sandbox,
  secrets,
}: AgentDefinition): AgentDefinition => ({
  ...{ name, engine },
  ...(model !== undefined && { model }),
  ...(systemPrompt !== undefined && { systemPrompt }),
  ...{ options, sandbox },
  ...(secrets && secrets.length > 0 && { secrets }),
})

/**
 * Stores a new version of an agent and makes it the active one. When the agent had no versions, its former definition is stored
 * as a version too; existing sandboxes stay with that one, unless the operator's file makes the change.
 */
export const saveVersion = (db: Database, teamId: string, input: AgentInput, files: VersionFiles): Deployment =>
  inTransaction(db, () => {
    const found = findAgent(db, teamId, input.slug)
    if (found && files.madeBy !== 'deploy' && found.deploymentId === undefined) {
      const { id: agentId, updatedAt: createdAt } = found
      const definition = definitionOf(found)
      const was = insertDeployment(db, { agentId, definition, madeBy: 'apply', tools: [], createdAt })
      saveAgent(db, teamId, { ...found, deploymentId: was.id })
    }
    if (files.madeBy !== 'apply') pinToActive(db, teamId, input.slug)
    const { id: agentId } = saveAgent(db, teamId, input)
    const made = insertDeployment(db, { ...files, agentId, definition: definitionOf(input) })
    saveAgent(db, teamId, { ...input, deploymentId: made.id })
    return made
  })

/**
 * Pins the sandboxes that follow the operator's file to the agent's active version, because a change that is not the operator's
 * follows.
 */
export function pinToActive(db: Database, teamId: string, slug: string): void {
  const deploymentId = findAgent(db, teamId, slug)?.deploymentId
  if (deploymentId !== undefined) pinSandboxes(db, { teamId, agentSlug: slug, deploymentId })
}

/** The part of the operator's limits that stays in force after a change that is not the operator's. */
export function grantedLimits({ deploymentId, sandbox, operatorLimits }: Agent): Pick<Agent, 'operatorLimits'> {
  const granted = deploymentId === undefined ? sandbox.limits : operatorLimits
  return granted ? { operatorLimits: granted } : {}
}

/** The agent's active version; undefined when it has no versions. */
export const findActive = (
  db: Database,
  { deploymentId }: Pick<Agent, 'deploymentId'>,
): DeploymentSummary | undefined => (deploymentId === undefined ? undefined : findVersion(db, deploymentId))

/** Picks what an agent's next version keeps of this one when no bundle comes with the change. */
export const filesOf = (version: DeploymentSummary | undefined): Omit<VersionFiles, 'madeBy'> => ({
  tools: version?.tools ?? [],
  ...(version?.bundle !== undefined && { bundle: version.bundle }),
  ...(version?.template !== undefined && { template: version.template }),
})

/**
 * Gives an agent the definition of the operator's file, whatever was deployed or edited before. An agent that has versions gets a
 * new one, unless its definition is the same already.
 * that is what it is already.
 */
export const applyAgent = (db: Database, teamId: string, input: AgentInput): void =>
  inTransaction(db, () => {
    const found = findAgent(db, teamId, input.slug)
    const hasVersions = found !== undefined && listDeployments(db, found.id).length > 0
    if (!hasVersions) {
      saveAgent(db, teamId, input)
      return
    }
    const { deploymentId } = found
    const applied = { ...input, operatorLimits: input.sandbox.limits }
    const isSame = isDeepStrictEqual(definitionOf(found), definitionOf(input))
    if (isSame && findActive(db, found)?.bundle === undefined) {
      saveAgent(db, teamId, { ...applied, ...(deploymentId !== undefined && { deploymentId }) })
      return
    }
    const { version } = saveVersion(db, teamId, applied, { madeBy: 'apply', tools: [] })
    const text = `${input.slug} is at version ${version}, by the operator's file.`
    logAgent(db, found.id, { source: 'deploy', level: 'info', text })
  })
