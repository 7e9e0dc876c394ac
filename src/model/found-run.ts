import type { RunStatus, Usage } from './run.ts'

/** A run as a caller sees it. */
export interface FoundRun extends Usage {
  id: string
  threadId: string
  sandboxId: string
  /** The reply that it made, or went on with. Null for a run of an earlier version. */
  messageId: string | null
  status: RunStatus
  model: string | null
  error: string | null
  startedAt: string
  endedAt: string | null
  durationMs: number | null
}

/** A page of a team's runs: those for which all that is given holds. */
export interface RunFilter {
  teamId: string
  limit: number
  /** The id of the last one of the page before. */
  before?: string
  id?: string
  threadId?: string
  sandboxId?: string
  status?: RunStatus
  /** The agents of their sandboxes. */
  agents?: readonly string[]
  /** The end user of both the sandbox and the thread. */
  userId?: string
}

/** A tool that a run has called; the state is that of the call's part in the message. */
export interface ToolCall {
  callId: string
  name: string
  state: string
}

/** A chunk of a run's stream. */
export interface RunEvent {
  /** A number that grows along the stream; some may be left out. */
  seq: number
  /** ISO time; null in runs of earlier versions. */
  at: string | null
  chunk: { type: string }
}

/** A page of a run's stream. */
export interface RunEventPage {
  events: RunEvent[]
  /** The number after which the next page begins; null on the last page. */
  nextAfter: number | null
}
