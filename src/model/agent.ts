import type { Limits, TurnOptions } from '../plugin-api/index.ts'

/** What each sandbox of an agent starts with. */
export interface AgentSandbox {
  files: Record<string, string>
  envs: Record<string, string>
  setup: string[]
  cwd?: string
  /** For nsjail. */
  base?: string
  /** For docker. */
  image?: string
  /** For e2b. */
  template?: string
  limits: Limits
  /** Time to live since the last use, for a sandbox whose request sets none. */
  timeoutMs?: number
}

/** What an agent may do, and spend, in a turn. A chat's own options stay within these. */
export interface AgentOptions extends TurnOptions {
  maxBudgetUsd?: number
  maxSandboxBudgetUsd?: number
  /** In all, over every sandbox. */
  maxAgentBudgetUsd?: number
  networkAllowOut?: string[]
  networkDenyOut?: string[]
}

/** What an agent is, whether a file or a deploy made it. */
export interface AgentDefinition {
  name: string
  engine: string
  model?: string
  systemPrompt?: string
  sandbox: AgentSandbox
  options: AgentOptions
}

export interface Agent extends AgentDefinition {
  id: string
  teamId: string
  slug: string
  /** The version that it is now; undefined when a file made it so. */
  deploymentId?: string
  createdAt: string
  updatedAt: string
}

export type AgentInput = Omit<Agent, 'id' | 'teamId' | 'createdAt' | 'updatedAt'>
