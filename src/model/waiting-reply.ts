/** A reply that has open calls, or calls whose answers the agent was not given yet. */
export interface WaitingReply {
  threadId: string
  messageId: string
  sandboxId: string
  teamId: string
  /** What the chat has asked for that the reply is of, as core/chat wrote it. */
  request: unknown
}
