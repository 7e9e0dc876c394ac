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
  /** Without it, a new one. */
  id?: string
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

/** A thread among those of all sandboxes. */
export interface FoundThread {
  id: string
  sandboxId: string
  agentSlug: string
  agentName: string
  name: string | null
  status: Thread['status']
  error: string | null
  externalUserId: string | null
  createdAt: string
  updatedAt: string
  completedAt: string | null
}

/** A page of a team's threads: those for which all that is given holds. */
export interface ThreadFilter {
  teamId: string
  limit: number
  /** The id of the last one of the page before. */
  before?: string
  /** The agents of their sandboxes. */
  agents?: readonly string[]
  sandboxId?: string
  userId?: string
  /** Only those whose sandbox belongs to the same end user. */
  isOwn?: boolean
  status?: Thread['status']
  /** In one message is each of these words, and the last as a word's beginning. Letters and digits only. */
  words?: readonly string[]
}

/** Sums over a thread's ended runs. Each is null while no run has ended. */
export interface ThreadUsage {
  inputTokens: number | null
  outputTokens: number | null
  totalTokens: number | null
  totalCostUsd: number | null
  durationMs: number | null
}
