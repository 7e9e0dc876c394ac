/** What an agent, or a command, does again and again. */
export interface Schedule {
  id: string
  teamId: string
  /** The key that made it, or changed it last. Absent for the configured one. */
  keyId?: string
  name: string
  /** Five fields, or a word such as `@daily`. */
  cron: string
  /** An IANA name. */
  timeZone: string
  agentSlug: string
  /** One of both is there. */
  prompt?: string
  command?: string
  /** `new`: each run has its own. `same`: all runs share one, made by the first. Else the id of one. */
  sandbox: string
  /** The one that `same` made last. */
  sandboxId?: string
  timeoutMs: number
  /** It goes on after its key was revoked or has expired. */
  keep: boolean
  pausedAt?: string
  /** Absent when a request has paused it. */
  pausedBy?: 'key'
  /** Absent while it is paused. */
  nextAt?: string
  /** The last moment of the cron expression that was dealt with. */
  lastDueAt?: string
  createdAt: string
  updatedAt: string
}

/** `due`: stored, and not begun. `waiting`: over, and its reply waits for a person or a client. */
export type ScheduleRunStatus =
  | 'due'
  | 'running'
  | 'completed'
  | 'waiting'
  | 'failed'
  | 'cancelled'
  | 'interrupted'
  | 'timed_out'
  | 'skipped'

/** One time that a schedule was due. */
export interface ScheduleRun {
  id: string
  scheduleId: string
  /** `missed`: the server was down, or the clock was set, when it was due. */
  trigger: 'due' | 'missed' | 'request'
  dueAt: string
  status: ScheduleRunStatus
  /** Where it runs: chosen before it is made, so that a next server finds it. */
  sandboxId: string
  threadId: string
  runId?: string
  pid?: number
  exitCode?: number
  /** Why it failed, was skipped or was ended. */
  error?: string
  startedAt?: string
  endedAt?: string
}

/** How a run of a schedule ended. */
export interface ScheduleRunEnd {
  status: Exclude<ScheduleRunStatus, 'due' | 'running'>
  exitCode?: number
  error?: string
}
