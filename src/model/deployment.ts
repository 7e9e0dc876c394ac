import type { AgentDefinition } from './agent.ts'

export interface DeployedTool {
  name: string
  description: string
}

/** What made a version: a bundle that was sent, a change through the API, or the operator's file. */
export type VersionMaker = 'deploy' | 'edit' | 'apply'

/** One version of an agent, without what may be large or secret in it. */
export interface DeploymentSummary {
  id: string
  agentId: string
  /** From 1, one more for each change of the agent. */
  version: number
  madeBy: VersionMaker
  model?: string
  tools: DeployedTool[]
  /** Names of files: the bundle, and the archive of files that new sandboxes begin with. An agent without code has neither. */
  bundle?: string
  template?: string
  createdAt: string
}

export interface Deployment extends DeploymentSummary {
  definition: AgentDefinition
}

export type DeploymentInput = Pick<
  Deployment,
  'agentId' | 'madeBy' | 'definition' | 'tools' | 'bundle' | 'template'
> & {
  /** Default: now. */
  createdAt?: string
}
