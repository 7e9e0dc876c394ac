import type { UIMessage } from 'ai'

/** A message of the thread, with what the API adds to the AI SDK's. */
export type ChatMessage = UIMessage & { branch?: string; branches?: string[] }
