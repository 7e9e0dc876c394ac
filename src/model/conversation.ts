/** A client's name for a conversation, and the caller that it belongs to. Each caller has names of its own. */
export interface ConversationName {
  teamId: string
  userId?: string
  agentSlug: string
  name: string
}

export interface Conversation {
  /** The sandbox that was asked for; null for one that the conversation made. */
  askedSandboxId: string | null
  sandboxId: string
  threadId: string
}
