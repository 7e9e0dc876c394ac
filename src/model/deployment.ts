import type { AgentDefinition } from './agent.ts'

export interface DeployedTool {
  name: string
  description: string
}

/** One version of an agent, without what may be large or secret in it. */
export interface DeploymentSummary {
  id: string
  agentId: string
  /** From 1, one more for each deploy of the agent. */
  version: number
  model?: string
  tools: DeployedTool[]
  /** Names of files: the bundle, and the archive of files that new sandboxes begin with. */
  bundle: string
  template?: string
  createdAt: string
}

export interface Deployment extends DeploymentSummary {
  definition: AgentDefinition
}

export type DeploymentInput = Pick<Deployment, 'agentId' | 'definition' | 'tools' | 'bundle' | 'template'>
