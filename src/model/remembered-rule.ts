/** A rule that allows what a person has approved for good. */
export interface RememberedRule {
  id: string
  teamId: string
  agentSlug: string
  /** Null: in all of the agent's threads. */
  threadId: string | null
  /** In the form of an agent's `allow`. */
  rule: string
  createdAt: string
}
