import type { Environment } from './environment.ts'

/** One part of a message, in the format of the AI SDK's UI messages. */
export interface MessagePart {
  type: string
  [field: string]: unknown
}

export interface StoredMessage {
  id: string
  role: 'user' | 'assistant' | 'system'
  parts: MessagePart[]
}

/** What an engine is to answer. */
export interface Turn {
  /** The messages that this turn answers. */
  prompt: StoredMessage[]
  /** The earlier messages of the thread, oldest first. */
  history: StoredMessage[]
  model?: string
  systemPrompt?: string
  /** The id that an earlier turn of this thread gave in a `session` event. */
  engineSessionId?: string
}

/** Where and how an engine works during one turn. */
export interface EngineContext {
  environment: Environment
  /** Where the agent works, absolute. */
  cwd: string
  /** The sandbox's own variables, for each process that the engine starts. */
  env: Readonly<Record<string, string>>
  signal: AbortSignal
  /** Identifies the conversation, for an engine that keeps something between turns. Absent: nothing outlives the turn. */
  threadId?: string
  options: TurnOptions
  /** Gives access to the turn's model. Throws an ApiError that says what is missing. Only an engine that needs a model calls it. */
  openModel(): ModelAccess
  /** Fetches from the server, under the sandbox's network rules. */
  fetch(url: string, init?: RequestInit): Promise<Response>
}

/** What an agent or a chat allows its engine to do. */
export interface TurnOptions {
  /** How many model calls one turn may make; absent: the engine's own limit. */
  maxTurns?: number
  /** One of Claude Code's modes: default, acceptEdits, bypassPermissions, plan. */
  permissionMode?: string
  /** Names of tools that the model must not get. */
  disallowedTools?: string[]
  mcpServers?: Record<string, McpServer>
  /** For the engine `acp`. */
  acp?: AcpOptions
}

/** Which Agent Client Protocol program answers, and how it is set up. */
export interface AcpOptions {
  /** A program that the engine knows. */
  preset?: string
  /** Any other program, by its name in the sandbox; with `preset`, it replaces the preset's command. */
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
 * A model for one run. Calls go through the gateway, which holds the provider's key, meters and enforces budgets: these
 * values are worthless outside of the run.
 *
 * @example
 * const { baseUrl, token, fetch, id } = context.openModel()
 * const model = createAnthropic({ baseURL: baseUrl, apiKey: token, fetch })(id)
 */
export interface ModelAccess {
  /** The provider's name in the configuration. */
  provider: string
  /** The format of the provider's API. */
  wire: 'anthropic' | 'openai-responses' | 'openai-chat'
  /** The model's id at the provider. */
  id: string
  /** For `fetch`, with the API's own version path (`…/v1`). */
  baseUrl: string
  /** The same for a process in the sandbox. Reading it throws an ApiError that says why when no process there can reach it. */
  readonly insideBaseUrl: string
  /** In place of the provider's key. */
  token: string
  /**
   * The same for a program in the sandbox that outlives its turn. It is one token for all runs of the thread, and refused
   * while no run is active. A call with it gets this model, even when it names another, smaller one.
   */
  programToken: string
  /** Calls the gateway inside this process, without a network. */
  fetch: typeof fetch
  /** The size of the model's context window in tokens, where it is known. */
  contextTokens?: number
}

/**
 * What an engine yields during a turn.
 *
 * @example
 * yield { type: 'text', id: 'reply', delta: 'The tests ' }
 * yield { type: 'text', id: 'reply', delta: 'pass.' }
 * yield { type: 'part-end', id: 'reply' }
 */
export type EngineEvent =
  | { type: 'session'; engineSessionId: string; model?: string }
  | { type: 'text' | 'reasoning'; id: string; delta: string }
  | { type: 'part-end'; id: string }
  | { type: 'tool-input'; callId: string; name: string; delta: string }
  | { type: 'tool-call'; callId: string; name: string; input: unknown }
  /** What a running tool shows while it works. Readers see it live; it is not stored. Keep it as small and rare as a person can read. */
  | { type: 'tool-progress'; callId: string; data: Readonly<Record<string, unknown>> }
  | { type: 'tool-result'; callId: string; output: unknown; error?: string }
  | { type: 'usage'; inputTokens: number; outputTokens: number; costUsd?: number; model?: string }
  /** Readers see it live; it is not stored. The operator's log gets its level and code. */
  | { type: 'notice'; level: 'info' | 'warn'; code: string; text: string }

/** How a turn ended. */
export interface EngineEnd {
  status: 'completed' | 'cancelled' | 'failed'
  error?: { code: string; message: string }
}

/** What `Engine.check` gets. */
export type CheckContext = Pick<EngineContext, 'environment' | 'cwd' | 'env' | 'signal' | 'options'>

/**
 * Answers the turns of a chat. It never throws for a failure of the model or agent: the turn's end says so. After an abort
 * of `signal` it ends, with every process that it started dead.
 *
 * @example
 * const shout: Engine = {
 *   name: 'shout',
 *   async *run({ prompt }) {
 *     const text = prompt.flatMap(({ parts }) => parts.map(part => String(part.text ?? ''))).join(' ')
 *     yield { type: 'text', id: 'reply', delta: text.toUpperCase() }
 *     return { status: 'completed' }
 *   },
 * }
 */
export interface Engine {
  readonly name: string
  run(turn: Turn, context: EngineContext): AsyncGenerator<EngineEvent, EngineEnd>
  /** Throws an ApiError with a remedy when turns with these options cannot run in such an environment. */
  check?(context: CheckContext): Promise<void>
  /** Ends what the engine keeps between turns. Called when no turn runs. */
  close?(): Promise<void>
}
