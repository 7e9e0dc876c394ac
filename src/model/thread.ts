export interface Thread {
  id: string
  sandboxId: string
  name: string | null
  status: 'active' | 'streaming' | 'waiting' | 'completed' | 'error' | 'cancelled'
  error: string | null
  externalUserId?: string
  engineSessionId?: string
  createdAt: string
  updatedAt: string
  completedAt: string | null
}

export interface ThreadInput {
  sandboxId: string
  name?: string
  externalUserId?: string
}

export interface ThreadPage {
  limit?: number
  /** The id of the last one of the page before. */
  before?: string
  /** Only those of this end user. */
  userId?: string
}

/** Sums over a thread's ended runs. Each is null while no run has ended. */
export interface ThreadUsage {
  inputTokens: number | null
  outputTokens: number | null
  totalTokens: number | null
  totalCostUsd: number | null
  durationMs: number | null
}
