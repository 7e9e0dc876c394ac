/** One of the conversations that a thread has been. */
export interface Branch {
  id: string
  /** The branch whose beginning it shares; null for the conversation that the thread shows. */
  parentId: string | null
  /** The last message that it shares; null when it shares none. */
  afterMessageId: string | null
  /** The thread shows it: its messages are the thread's. */
  isActive: boolean
  /** The first message that it does not share; null for the active one. */
  first: { id: string; createdAt: string } | null
}

/** The place of a message among those that stand where it stands in other branches. */
export interface Fork {
  /** The branch that the message is of. */
  branch: string
  /** All branches that go on differently from here, this one too, the oldest first. */
  branches: string[]
}

/** The limits of what a thread keeps beside what it shows; the oldest goes first. */
export interface BranchBounds {
  branches: number
  /** Of their messages' parts. The branch that was cut off last is kept at any length. */
  bytes: number
}
