import type { Credential } from '../server.ts'

/** A tool of the client: the agent calls it, and the client answers with `addToolOutput`. */
export interface ThreadboxTool {
  description: string
  /** A JSON Schema of an object. */
  inputSchema: object
}

/** What a chat has made or found. */
export interface ThreadboxIds {
  sandboxId: string
  threadId: string
  /** Absent when the message waits for its turn, or for a person. */
  runId?: string
  /** `running`, or `queued`, `steering` or `waiting` where no reply has begun. */
  status: string
}

export interface ThreadboxChatSettings {
  /** Where the server is, as `https://threadbox.example.com`. */
  baseUrl: string
  /** The agent's slug. Default: the agent of the sandbox. */
  agent?: string
  /** For servers: an API key with the scope `chat`. */
  apiKey?: Credential
  /** For browsers: a token, or a function that fetches a fresh one. */
  token?: Credential
  /** Chats are in this sandbox. Default: each has one of its own. */
  sandboxId?: string
  /** The one thread that all messages go to. Default: the thread that the chat's id names. */
  threadId?: string
  /** Which chunks the client reads: `ai-7` (the default), `full` for version 6 of the AI SDK, `contract` for version 5. */
  stream?: 'ai-7' | 'full' | 'contract'
  /** Tools of the client, by their names. */
  tools?: Record<string, ThreadboxTool>
  /** What becomes of a message while a reply is under way. Default: `reject`. */
  whenBusy?: 'reject' | 'queue' | 'steer'
  /** Other fields of the request, as `options` and `externalUserId`. */
  body?: object
  /** Called with what each message has made or found. */
  onIds?: (ids: ThreadboxIds & { chatId: string }) => void
  /** In place of the global `fetch`. */
  fetch?: typeof fetch
}
