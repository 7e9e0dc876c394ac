/** The run, and all above it, that a model's call is charged to. */
export interface Spender {
  teamId: string
  /** The API key that asked; undefined for the configured one and for tokens. */
  keyId?: string
  agentSlug: string
  sandboxId: string
  threadId: string
  runId: string
}

/** One call of a model, once it has ended. */
export interface ModelCall extends Spender {
  provider: string
  /** The model's id at the provider. */
  model: string
  /** `aborted`: the caller went, or the run ended, before the answer was whole. */
  status: 'completed' | 'failed' | 'aborted'
  /** Includes the tokens of the cache. */
  inputTokens: number
  outputTokens: number
  cacheReadTokens: number
  cacheWriteTokens: number
  costUsd: number
  startedAt: string
  durationMs: number
}

/** The calls that a budget sums up. */
export type SpentScope =
  | { runId: string }
  /** Of every run that made a part of a reply. */
  | { threadId: string; replyId: string }
  | { threadId: string }
  | { sandboxId: string }
  | { teamId: string; agentSlug: string }
  /** A null key stands for a team's calls without a key of the database. */
  | { teamId: string; keyId: string | null; from: string }
  | { from: string }

export interface UsageSums {
  calls: number
  inputTokens: number
  outputTokens: number
  cacheReadTokens: number
  cacheWriteTokens: number
  costUsd: number
}

export interface UsageGroup extends UsageSums {
  /** An agent's slug, a thread's or key's id, `provider/model`, or a day (UTC); null for calls without a key of the database. */
  key: string | null
  /** Of a thread or key that is still there. */
  name?: string | null
  /** Where a thread is that is still there. */
  sandboxId?: string | null
}

export type GroupBy = 'agent' | 'thread' | 'key' | 'model' | 'day'
