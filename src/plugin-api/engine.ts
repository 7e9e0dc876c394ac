import type { Environment } from './environment.ts'

/** One part of a message, as the AI SDK's UI messages have them. */
export interface MessagePart {
  type: string
  [field: string]: unknown
}

export interface StoredMessage {
  id: string
  role: 'user' | 'assistant' | 'system'
  parts: MessagePart[]
}

export interface Turn {
  /** The messages that this turn answers. */
  prompt: StoredMessage[]
  /** What was said before, oldest first. */
  history: StoredMessage[]
  model?: string
  systemPrompt?: string
  /** What an earlier turn of this thread gave by a `session` event. */
  engineSessionId?: string
}

export interface EngineContext {
  environment: Environment
  /** Where the agent works, absolute. */
  cwd: string
  /** The sandbox's own variables, for each process that the engine starts. */
  env: Readonly<Record<string, string>>
  signal: AbortSignal
  /** Names the conversation, for an engine that keeps something between its turns. Absent: nothing outlives the turn. */
  threadId?: string
  options: TurnOptions
  /** Access to the turn's model. Throws an ApiError that says what is missing. An engine that needs no model never asks. */
  openModel(): ModelAccess
  /** A fetch by the sandbox's network rules, from the server. */
  fetch(url: string, init?: RequestInit): Promise<Response>
}

/** What an agent or a chat allows its engine. */
export interface TurnOptions {
  /** Model calls of one turn; undefined: the engine's own bound. */
  maxTurns?: number
  /** As Claude Code has them: default, acceptEdits, bypassPermissions, plan. */
  permissionMode?: string
  /** Tool names that the model must not have. */
  disallowedTools?: string[]
  mcpServers?: Record<string, McpServer>
  /** For the engine `acp`. */
  acp?: AcpOptions
}

/** Which Agent Client Protocol program answers, and how it is set up. */
export interface AcpOptions {
  /** A program that the engine knows. */
  preset?: string
  /** Any other, by its name in the sandbox; with `preset`, in place of that one's own. */
  command?: string
  args?: string[]
  env?: Record<string, string>
  /** The session's mode, by id or name. */
  mode?: string
  /** The session's options, by id or name. */
  config?: Record<string, string | boolean>
}

export type McpServer =
  | { type: 'http' | 'sse'; url: string; headers?: Record<string, string> }
  /** Runs in the sandbox. */
  | { type: 'stdio'; command: string; args?: string[]; env?: Record<string, string> }

/**
 * A model as the gateway gives it for one run. Calls go through the gateway, which holds the provider's key, meters and
 * enforces budgets: what is here is worth nothing outside of the run.
 */
export interface ModelAccess {
  /** The provider's name in the configuration. */
  provider: string
  /** What the provider's API speaks. */
  wire: 'anthropic' | 'openai-responses' | 'openai-chat'
  /** The model's id at the provider. */
  id: string
  /** For `fetch`, with the API's own version path (`…/v1`). */
  baseUrl: string
  /** The same as a process in the sandbox reaches it. Reading it throws an ApiError where none can: it says why. */
  readonly insideBaseUrl: string
  /** In place of the provider's key. */
  token: string
  /**
   * The same for a program in the sandbox that outlives its turn: one for all runs of the thread, refused while none is
   * active. A call under it gets this model, whatever small or fast one it names.
   */
  programToken: string
  /** Calls the gateway without a network. */
  fetch: typeof fetch
  /** Tokens that the model's window takes, where it is known. */
  contextTokens?: number
}

export type EngineEvent =
  | { type: 'session'; engineSessionId: string; model?: string }
  | { type: 'text' | 'reasoning'; id: string; delta: string }
  | { type: 'part-end'; id: string }
  | { type: 'tool-input'; callId: string; name: string; delta: string }
  | { type: 'tool-call'; callId: string; name: string; input: unknown }
  /** What a running tool shows of itself. Seen live, no part of the message: no larger and no more often than a person reads. */
  | { type: 'tool-progress'; callId: string; data: Readonly<Record<string, unknown>> }
  | { type: 'tool-result'; callId: string; output: unknown; error?: string }
  | { type: 'usage'; inputTokens: number; outputTokens: number; costUsd?: number; model?: string }
  /** Seen live, no part of the message; the operator's log gets its level and code. */
  | { type: 'notice'; level: 'info' | 'warn'; code: string; text: string }

export interface EngineEnd {
  status: 'completed' | 'cancelled' | 'failed'
  error?: { code: string; message: string }
}

/** What an engine needs to say whether it can run somewhere. */
export type CheckContext = Pick<EngineContext, 'environment' | 'cwd' | 'env' | 'signal' | 'options'>

/** What answers a chat. Never throws for a model's or agent's failure; after `signal` it ends with every child dead. */
export interface Engine {
  readonly name: string
  run(turn: Turn, context: EngineContext): AsyncGenerator<EngineEvent, EngineEnd>
  /** Throws an ApiError with a remedy when turns with these options cannot run in such an environment. */
  check?(context: CheckContext): Promise<void>
  /** Ends what it keeps between turns. No turn runs. */
  close?(): Promise<void>
}
