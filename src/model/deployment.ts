import type { AgentDefinition } from './agent.ts'

export interface DeployedTool {
  name: string
  description: string
}

/** The source of a version: a deployed bundle, a change through the API, or the operator's file. */
export type VersionMaker = 'deploy' | 'edit' | 'apply'

/** One version of an agent, without what may be large or secret in it. */
export interface DeploymentSummary {
  id: string
  agentId: string
  /** A number that starts at 1 and grows with each change of the agent. */
  version: number
  madeBy: VersionMaker
  model?: string
  tools: DeployedTool[]
  /** The names of the bundle's file, and of the archive with which new sandboxes begin. An agent without code has neither. */
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
  /** By default the present time. */
  createdAt?: string
}
