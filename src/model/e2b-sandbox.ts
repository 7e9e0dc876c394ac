/** What E2B's client asked for with a sandbox, and the sandbox's state in E2B's terms. */
export interface E2bSandbox {
  sandboxId: string
  /** The template's name, as the client wrote it. */
  template: string
  metadata: Record<string, string>
  /** The time to live, which also applies after each resume that names no other. */
  timeoutMs: number
  /** ISO time. */
  endsAt: string
  onEnd: 'kill' | 'pause'
  /** Whether a request to a port resumes the sandbox. */
  resumes: boolean
  /** Whether its ports need a token. */
  isPrivate: boolean
  /** Replaces the header `Host` of a request to a port; `${PORT}` in it becomes the port. */
  maskedHost?: string
  network?: E2bNetwork
  /** When the sandbox was paused; absent when it runs, or starts with its next use. */
  pausedAt?: string
}

/** Network rules in E2B's form, in which an allowed target wins over a denied one. */
export interface E2bNetwork {
  allowOut: string[]
  denyOut: string[]
}

/** Selects a page of sandboxes. */
export interface E2bPage {
  limit: number
  /** The id of the last sandbox on the page before. */
  after?: string
  isAscending: boolean
  metadata: Readonly<Record<string, string>>
  states: readonly ('running' | 'paused')[]
  template?: string
  /** Selects sandboxes that were made at this moment or later, as ISO time. */
  from?: string
}
