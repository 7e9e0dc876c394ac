import type { StoredMessage } from '../plugin-api/index.ts'

/** A message that waits for its thread's turn, with all that its run needs. */
export interface QueuedMessage {
  /** The client's id of the message, which is the last of the user's in `messages`. */
  id: string
  threadId: string
  /** `steer`: the thread's active run may take it between two of its steps. */
  mode: 'queue' | 'steer'
  /** The queue waits until someone says go. */
  isHeld: boolean
  agentSlug: string
  /** The API key that asked. */
  keyId?: string
  /** What its run adds to the thread. */
  messages: StoredMessage[]
  /** The rest of the chat, as the one that stored it wrote it. */
  request: Readonly<Record<string, unknown>>
  createdAt: string
}
