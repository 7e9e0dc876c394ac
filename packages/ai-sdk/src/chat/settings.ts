import type { Credential } from '../server.ts'

/** A tool of the client: the agent calls it, and the client answers with `addToolOutput`. */
export interface ThreadboxTool {
  description: string
  /** A JSON Schema of an object. */
  inputSchema: object
}

/** The sandbox, thread and run of a chat. */
export interface ThreadboxIds {
  sandboxId: string
  threadId: string
  /** Absent when the message waits for its turn or for a person. */
  runId?: string
  /** `running`; or `queued`, `steering` or `waiting` when no reply has begun. */
  status: string
}

export interface ThreadboxChatSettings {
  /** The server's address, such as `https://threadbox.example.com`. */
  baseUrl: string
  /** The agent's slug. By default the agent of the sandbox. */
  agent?: string
  /** For servers: an API key with the scope `chat`. */
  apiKey?: Credential
  /** For browsers: a token, or a function that fetches a fresh one. */
  token?: Credential
  /** The sandbox of all chats. By default each chat has its own. */
  sandboxId?: string
  /** The one thread that receives all messages. By default a thread that belongs to the chat's id. */
  threadId?: string
  /** Which chunks the client reads: `ai-7` (the default), `full` for version 6 of the AI SDK, `contract` for version 5. */
  stream?: 'ai-7' | 'full' | 'contract'
  /** Tools of the client, by their names. */
  tools?: Record<string, ThreadboxTool>
  /** What to do with a message while a reply goes on. By default it is rejected. */
  whenBusy?: 'reject' | 'queue' | 'steer'
  /** Other fields of the request, such as `options` and `externalUserId`. */
  body?: object
  /** Called with the ids of each message's sandbox, thread and run. */
  onIds?: (ids: ThreadboxIds & { chatId: string }) => void
  /** Replaces the global `fetch`. */
  fetch?: typeof fetch
}
