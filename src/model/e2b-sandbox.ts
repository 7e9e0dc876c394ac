/** What E2B's clients asked for with a sandbox, and what became of it. */
export interface E2bSandbox {
  sandboxId: string
  /** As the client named it. */
  template: string
  metadata: Record<string, string>
  /** Its time to live, again after each resume that names no other. */
  timeoutMs: number
  /** ISO time. */
  endsAt: string
  onEnd: 'kill' | 'pause'
  /** Whether traffic resumes it. */
  resumes: boolean
  /** Whether its ports need a token. */
  isPrivate: boolean
  /** In place of the header `Host` of a request to a port; `${PORT}` in it is the port. */
  maskedHost?: string
  network?: E2bNetwork
  /** Absent: it runs, or starts with its next use. */
  pausedAt?: string
}

/** The network rules in E2B's words: what is allowed wins over what is denied. */
export interface E2bNetwork {
  allowOut: string[]
  denyOut: string[]
}

/** What a page of sandboxes is about. */
export interface E2bPage {
  limit: number
  /** The id of the last one of the page before. */
  after?: string
  isAscending: boolean
  metadata: Readonly<Record<string, string>>
  states: readonly ('running' | 'paused')[]
  template?: string
  /** Only those that were made at this moment or later. ISO time. */
  from?: string
}
