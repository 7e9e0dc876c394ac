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
  /** Present when the turn goes on with a reply that waited for answers. Only engines that support this get it. */
  continues?: Continuation
}

/** What a waiting reply has got: the answers to the calls that it left open. */
export interface Continuation {
  /** The reply so far. The open calls are among its parts. `prompt` has the message that it answers, `history` what came before. */
  reply: StoredMessage
  /** In the order of the calls. */
  answers: CallAnswer[]
  /**
   * Other messages followed the reply before the answers came: `history` has all of them, and `prompt` is empty. What was
   * approved runs as a new call, in a new reply.
   */
  isLate: boolean
}

/** What became of a call that a turn left open. */
export type CallAnswer = { callId: string; name: string; input: unknown } & (
  | { type: 'approved' }
  | { type: 'denied'; reason?: string }
  /** The output of a client's tool. */
  | { type: 'output'; output: unknown }
  | { type: 'error'; error: string }
)

/** A tool that the client executes. Its call ends the turn as `waiting`. */
export interface ClientTool {
  description: string
  /** A JSON schema. */
  inputSchema: Readonly<Record<string, unknown>>
}

export interface Permission {
  decision: 'allow' | 'ask' | 'deny'
  /** For the person who is asked, or for the model when the call is denied. */
  reason?: string
}

/** Decides which calls an engine may make, by the agent's and the chat's rules. */
export interface Permissions {
  /**
   * True: nobody is asked, and no rule is stricter than the mode and the disallowed tools in `options`. A program that keeps to
   * these by itself need not ask about each call.
   */
  readonly byOptionsAlone?: boolean
  /** `ask` comes only to engines that support approvals. `isReadOnly`: the engine knows that the tool changes nothing. */
  decide(name: string, input: unknown, facts?: { isReadOnly?: boolean }): Permission
}

/** Messages that the user sends while a turn runs. */
export interface Steering {
  /** Takes what has come since, oldest first. The engine yields `steered` for each message that it has given to the model. */
  take(): StoredMessage[]
  /** Calls the listener when a message has come. Returns a function that ends this. */
  onMessage(listener: () => void): () => void
}

/** What an engine can do beyond a plain turn. */
export type EngineFeature = 'approvals' | 'clientTools' | 'steering'

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
  permissions: Permissions
  /** By name. Empty for an engine that does not support them. */
  clientTools: Readonly<Record<string, ClientTool>>
  /** Absent for an engine that does not support it. */
  steering?: Steering
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
  /** The rules that deny calls. `permissions` decides by them, and by others; these are for programs that take rules. */
  deny?: string[]
  /** The agent's rules that allow calls. In plan mode their tools are shown to the model. */
  allow?: string[]
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
  /** A person is to decide on this call: it follows the `tool-call`. The turn ends as `waiting`. */
  | { type: 'approval-request'; callId: string; reason?: string }
  /** An approved call is executed as soon as this event is taken: never before, and never again. */
  | { type: 'tool-begin'; callId: string }
  /** A file that the reply shows, such as a chart. `url`: a `data:` URL, or one of the server's own. */
  | { type: 'file'; mediaType: string; url: string }
  /** A page that the reply rests on. */
  | { type: 'source'; id: string; url: string; title?: string }
  /** A lasting part of the reply, of the type `data-NAME`. It takes the place of an earlier one of this name and id. */
  | { type: 'data'; name: string; id: string; data: unknown }
  /** The model has got this message of `steering`. */
  | { type: 'steered'; messageId: string }
  | { type: 'usage'; inputTokens: number; outputTokens: number; costUsd?: number; model?: string }
  /** Readers see it live; it is not stored. The operator's log gets its level and code. */
  | { type: 'notice'; level: 'info' | 'warn'; code: string; text: string }

/** How a turn ended. `waiting`: it left calls open, for a person's approval or for the client's tools. */
export interface EngineEnd {
  status: 'completed' | 'cancelled' | 'failed' | 'waiting'
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
  /** Absent: nothing beyond a plain turn. */
  readonly supports?: readonly EngineFeature[]
  run(turn: Turn, context: EngineContext): AsyncGenerator<EngineEvent, EngineEnd>
  /** Throws an ApiError with a remedy when turns with these options cannot run in such an environment. */
  check?(context: CheckContext): Promise<void>
  /** Ends what the engine keeps between turns. Called when no turn runs. */
  close?(): Promise<void>
}
