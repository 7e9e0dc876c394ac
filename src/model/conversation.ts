/** What a client calls a conversation, and who it is. Another caller's conversation of the same name is another one. */
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
