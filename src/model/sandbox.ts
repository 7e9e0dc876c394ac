import type { Isolation } from '../plugin-api/index.ts'
import type { KeptBinding } from './secret.ts'

/** Rules as they were written. No `allowOut` is no opinion. */
export interface NetworkRules {
  allowOut?: string[]
  denyOut?: string[]
}

/** What a sandbox may reach, by its agent's rules at the time and by the request that made it. Both must allow. */
export interface SandboxNetwork {
  agent?: NetworkRules
  own?: NetworkRules
  /** The secrets that the sandbox's programs may use there, without having them. */
  secrets?: readonly KeptBinding[]
}

export interface Sandbox {
  id: string
  teamId: string
  agentSlug: string
  agentName: string
  environmentId: string
  backend: string
  /** The isolation that the sandbox was made with. Absent for the backend's usual one. */
  isolation?: Isolation
  status: string
  error?: string
  envs: Record<string, string>
  cwd: string
  network: SandboxNetwork
  timeoutMs?: number
  /** The version of the agent that it was made with. */
  deploymentId?: string
  /** The agent's own tools, by the name of their bundle. */
  bundle?: string
  /** The end user whose token made it. */
  externalUserId?: string
  /** A name that the client chose. It is unique in the team. */
  name?: string
  createdAt: string
  updatedAt: string
  lastUsedAt: string
}

export type SandboxInput = Omit<Sandbox, 'createdAt' | 'updatedAt' | 'lastUsedAt'>

export interface SandboxPage {
  limit: number
  /** The id of the last one of the page before. */
  before?: string
  /** Only those of these agents, or of this end user. */
  agents?: string[]
  userId?: string
  /** Only those with a failed thread (true), or without one (false). */
  hasFailed?: boolean
  /** Only those whose id or environment's id has this in it. */
  search?: string
  /** Selects the sandbox of this name. */
  name?: string
  /** Only those made from this moment on, or before that one. */
  from?: string
  to?: string
}
