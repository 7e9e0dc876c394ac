export type ApprovalStatus = 'pending' | 'approved' | 'denied' | 'expired' | 'cancelled'

/** For how long a decision holds: for every such call of the thread, or of the agent. */
export type Remember = 'thread' | 'agent'

/** A call that an agent wants to make and a person decides on. */
export interface Approval {
  id: string
  teamId: string
  agentSlug: string
  sandboxId: string
  threadId: string
  /** The run that asked. */
  runId: string
  /** The reply that has the call. */
  messageId: string
  toolCallId: string
  kind: 'tool' | 'budget'
  tool: string
  input: unknown
  /** Why it is asked. */
  reason: string | null
  status: ApprovalStatus
  /** What the person said to it. */
  answerReason: string | null
  /** The end user or the API key that decided. */
  answeredBy: string | null
  remember: Remember | null
  createdAt: string
  expiresAt: string
  answeredAt: string | null
  /** The call was begun, or the agent was told of the refusal. */
  usedAt: string | null
}

export type ApprovalInput = Pick<
  Approval,
  | 'id'
  | 'teamId'
  | 'agentSlug'
  | 'sandboxId'
  | 'threadId'
  | 'runId'
  | 'messageId'
  | 'toolCallId'
  | 'kind'
  | 'tool'
  | 'input'
  | 'expiresAt'
> & { reason?: string }

/** What a person, or time, has decided. */
export interface Decision {
  status: 'approved' | 'denied' | 'expired' | 'cancelled'
  reason?: string
  answeredBy?: string
  remember?: Remember
}

export interface ApprovalPage {
  limit: number
  /** The id of the last one of the page before. */
  before?: string
  status?: ApprovalStatus
  sandboxId?: string
  threadId?: string
  /** Only those of threads and sandboxes of this end user, or of these agents. */
  userId?: string
  agents?: string[]
}
