import type { StoredMessage } from '../plugin-api/index.ts'

/** A message of a thread. `metadata` is null but for an assistant's, which has its run's. */
export type Message = StoredMessage & { metadata: unknown; createdAt: string }

/** The limits of a page, in messages and in characters of their parts. A page has at least one message. */
export interface MessageBounds {
  messages: number
  characters: number
}
