/** A prompt or a command that runs at certain times. */
export interface Schedule {
  id: string
  teamId: string
  /** The key that made or last changed it. Absent for the configured key. */
  keyId?: string
  name: string
  /** A cron expression: five fields, or a word such as `@daily`. */
  cron: string
  /** An IANA name. */
  timeZone: string
  agentSlug: string
  /** A schedule has either a prompt or a command. */
  prompt?: string
  command?: string
  /**
   * `new` gives each run its own sandbox, `same` gives all runs one that the first run makes. Any other text is a sandbox's id.
   */
  sandbox: string
  /** The latest sandbox that was made for `same`. */
  sandboxId?: string
  timeoutMs: number
  /** Whether it goes on after its key was revoked or has expired. */
  keep: boolean
  pausedAt?: string
  /** Absent when a request has paused it. */
  pausedBy?: 'key'
  /** Absent while it is paused. */
  nextAt?: string
  /** The last due moment that was dealt with. */
  lastDueAt?: string
  createdAt: string
  updatedAt: string
}

/** `due` is stored but has not begun. `waiting` is over, and its reply waits for a person or a client. */
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

/** One moment at which a schedule was due, or was run by a request. */
export interface ScheduleRun {
  id: string
  scheduleId: string
  /** `missed` means that the server was down, or that the clock was set, when the run was due. */
  trigger: 'due' | 'missed' | 'request'
  dueAt: string
  status: ScheduleRunStatus
  /** The sandbox of the run. Its id is chosen before the sandbox is made, so that the next server finds it. */
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
