import type { StreamProfile } from '../stream/project.ts'

export type RunStatus = 'active' | 'waiting' | 'completed' | 'cancelled' | 'failed' | 'interrupted'

/** What a run has used of its model so far. */
export interface Usage {
  inputTokens: number
  outputTokens: number
  costUsd: number
}

export interface RunRecord extends Usage {
  id: string
  threadId: string
  sandboxId: string
  status: RunStatus
  /** The reply that the run makes, or goes on with. Null for a run of an earlier version. */
  messageId: string | null
  profile: StreamProfile
  model: string | null
  startedAt: string
  endedAt: string | null
}
