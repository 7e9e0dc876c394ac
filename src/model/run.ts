export type RunStatus = 'active' | 'completed' | 'cancelled' | 'failed' | 'interrupted'

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
  model: string | null
  startedAt: string
  endedAt: string | null
}
