/** Something that has happened in a team. `data` has only ids and states, and no user's text. */
export interface TeamEvent {
  /** A number that grows with time. */
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
  /** The exact types that are wanted; absent for all. */
  types?: readonly string[]
  sandboxId?: string
  /** Only events of these agents. */
  agents?: readonly string[]
  /** Only events of this end user. */
  userId?: string
  /** Whether a token reads: it does not see events about money. */
  isToken: boolean
}
