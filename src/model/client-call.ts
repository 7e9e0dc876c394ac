/** What the client's tool gave, or why it did not. */
export type ClientAnswer = { output: unknown } | { errorText: string }

/** A call of a tool that the client has. */
export interface ClientCall {
  threadId: string
  messageId: string
  toolCallId: string
  runId: string
  tool: string
  input: unknown
  status: 'pending' | 'answered' | 'expired' | 'cancelled'
  /** Until the agent was given it. */
  answer?: ClientAnswer
  createdAt: string
  expiresAt: string
  /** The agent was given the answer. */
  usedAt: string | null
}

export type ClientCallInput = Pick<
  ClientCall,
  'threadId' | 'messageId' | 'toolCallId' | 'runId' | 'tool' | 'input' | 'expiresAt'
>
