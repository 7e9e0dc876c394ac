import type { ClientTool, Isolation, Limits, TurnOptions } from '../plugin-api/index.ts'
import type { StreamProfile } from '../stream/project.ts'
import type { SecretBinding } from './secret.ts'

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
  /** For docker: the runtime to use, one of those that the operator offers. */
  runtime?: string
  /** For e2b. */
  template?: string
  limits: Limits
  /** The weakest isolation that its sandboxes may have. */
  isolation?: Isolation
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
  /** Rules in Claude's form, of calls before which a person is asked. */
  ask?: string[]
  /** Whether what asks waits for a person. Default: off. */
  approvals?: 'on' | 'off'
  /** How long an approval waits before it counts as denied. Default: a day. */
  approvalTimeoutMs?: number
  /** How long a call of a client's tool waits. Default: a day. */
  clientToolTimeoutMs?: number
  /** What becomes of a run that would spend more than it may. Default: fail. */
  onBudget?: 'ask' | 'fail'
  /** Of chats that name none. Default: contract. */
  stream?: StreamProfile
  clientTools?: Record<string, ClientTool>
}

/** What an agent is, whether a file or a deploy made it. */
export interface AgentDefinition {
  name: string
  engine: string
  model?: string
  systemPrompt?: string
  sandbox: AgentSandbox
  options: AgentOptions
  /** The secrets that each new sandbox may use at some hosts. */
  secrets?: readonly SecretBinding[]
}

export interface Agent extends AgentDefinition {
  id: string
  teamId: string
  slug: string
  /** The agent's active version; undefined when a file defines it and it has no versions. */
  deploymentId?: string
  /** Limits that the operator's file gave to an agent with versions. */
  operatorLimits?: Limits
  createdAt: string
  updatedAt: string
}

export type AgentInput = Omit<Agent, 'id' | 'teamId' | 'createdAt' | 'updatedAt'>
