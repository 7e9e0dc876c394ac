/** Something that has happened in a team. `data` has ids and states, and nobody's text. */
export interface TeamEvent {
  /** Grows with time. */
  id: number
  type: string
  data: Readonly<Record<string, unknown>>
  createdAt: string
}

/** A page of a team's events after one of them, oldest first. */
export interface EventFilter {
  teamId: string
  after: number
  limit: number
  /** Exact types; absent: all. */
  types?: readonly string[]
  sandboxId?: string
  /** Of these agents alone. */
  agents?: readonly string[]
  /** Of this end user alone. */
  userId?: string
  /** Without what is about money. */
  isToken: boolean
}
