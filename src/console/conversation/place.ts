/** Where a conversation is, and with whom. */
export interface ThreadPlace {
  sandboxId: string
  threadId: string
  /** The agent's slug. */
  agent: string
}
