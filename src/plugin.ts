import type { Duplex } from 'node:stream'
import type { EnvironmentProcesses } from './plugin/processes.ts'

export type * from './plugin/processes.ts'

/** A functional probe's outcome. `required` ones refuse to let the server start when they fail. */
export interface Check {
  name: string
  ok: boolean
  required: boolean
  detail: string
  remedy?: string
}

/** What one sandbox may use. Undefined means that the backend does not limit it. */
export interface Limits {
  memoryMb?: number
  processes?: number
  /** CPU cores, in fractions. */
  cpus?: number
  diskMb?: number
}

export interface EnvironmentSpec {
  /** Chosen by the caller, `env_` over a UUIDv7; safe as a file name. */
  id: string
  /** What it starts from, each backend by its own field; without it, by the backend's default. nsjail: a base. */
  base?: string
  /** docker: an image. */
  image?: string
  /** e2b: a template. */
  template?: string
  limits: Limits
  /** The sandbox's own variables, for a backend that sets them for all that runs. Each spawn brings them anyway. */
  env?: Readonly<Record<string, string>>
  /** For a backend whose environments do not leave through the server's proxy. */
  network?: NetworkSpec
}

/** What an environment may reach. Each layer must allow; undefined `allowOut` allows all that is public. */
export interface NetworkSpec {
  mode: 'public' | 'none'
  layers: readonly { allowOut?: readonly string[]; denyOut?: readonly string[] }[]
}

/** Where isolated environments live. Built once by its plugin, then shared by all of the server. */
export interface Backend {
  readonly name: string
  readonly isolation: 'namespaces' | 'container' | 'microvm'
  /**
   * How environments reach the network. `proxy`: by the server's proxy alone, at 127.0.0.1:3128 inside. `own`: by
   * themselves, under `EnvironmentSpec.network`.
   */
  readonly egress: 'proxy' | 'own'
  check(): Promise<Check[]>
  /** Makes an environment and waits until it answers. A rejected create leaves nothing behind. */
  create(spec: EnvironmentSpec): Promise<Environment>
  /** Finds an environment, also after a restart of the server. Undefined when it does not exist. */
  open(environmentId: string): Promise<Environment | undefined>
  /** Ids of all that exists, for the sweep of orphans. */
  list(): Promise<string[]>
  /** Lets go of connections and timers; environments go on. */
  close(): Promise<void>
}

export interface Environment {
  readonly id: string
  /** What confines it and what could not be limited here, in words for the operator. */
  readonly confinement: string[]
  spawn(command: SpawnOptions): Promise<SandboxProcess>
  /** How this program's executable is run inside; its arguments follow. Absent where it is not inside. */
  readonly executable?: readonly string[]
  readonly files: EnvironmentFiles
  /** Absent: the server keeps processes itself, over `spawn`, and they end with it. */
  readonly processes?: EnvironmentProcesses
  /** A byte stream to a server on the environment's loopback. Rejects with `port_unreachable` when nothing listens. */
  connect(port: number): Promise<Duplex>
  /** Ends every process and keeps the files; the next use starts it again. */
  pause?(): Promise<void>
  /** Of a backend whose egress is `own`: replaces what it may reach. When it resolves, the new rules hold. */
  setNetwork?(network: NetworkSpec): Promise<void>
  /** Where it has an interpreter of code cells. Cells of one language and directory share their variables. */
  runCode?(code: string, options: RunCodeOptions): Promise<CodeResult>
  /** Whether `runCode` is possible here: not every template of a backend has what it takes. */
  hasInterpreter?(): Promise<boolean>
  /** Idempotent. When it resolves, nothing is left: processes, mounts, cgroups, files. */
  destroy(): Promise<void>
}

export interface SpawnOptions {
  /** The program and its arguments, or one line for the environment's shell (bash, else sh). */
  command: readonly string[] | string
  /** Absolute; /home/user when absent. */
  cwd?: string
  /** Added to the environment's PATH, HOME, LANG and USER. */
  env?: Readonly<Record<string, string>>
  /** `pipe`: the process reads `stdin` until it is ended. `ignore` (default): it reads end of file at once. */
  stdin?: 'pipe' | 'ignore'
  /** A terminal of this size instead of pipes: what it prints is all in `stdout`, `stdin` is its keyboard. */
  pty?: TerminalSize
  /** Aborted: the whole process tree is killed; `exited` resolves once it is dead. */
  signal?: AbortSignal
}

export interface RunCodeOptions {
  /** Python unless given. */
  language?: string
  /** Absolute; /home/user when absent. */
  cwd?: string
  env?: Readonly<Record<string, string>>
  /** Then the cell is stopped, its variables are lost, and it rejects with command_timeout. */
  timeoutMs?: number
  /** Aborted: the same, with its reason. */
  signal?: AbortSignal
}

/** What a code cell came to. */
export interface CodeResult {
  stdout: string
  stderr: string
  /** What it shows, in the order of its making: the value of its last expression, charts. */
  results: { text?: string; images: { mediaType: string; data: string }[] }[]
  /** The cell ended by it. */
  error?: { name: string; value: string; traceback: string }
}

export interface TerminalSize {
  columns: number
  rows: number
}

export interface ProcessExit {
  /** 128 + the signal's number when a signal ended it. */
  exitCode: number
  signal?: string
}

export interface SandboxProcess {
  readonly pid: number
  /** Present with `stdin: 'pipe'` and with `pty`. */
  readonly stdin?: WritableStream<Uint8Array>
  /** Ends when the process has ended, even if one it left in the background still holds it open. */
  readonly stdout: ReadableStream<Uint8Array>
  readonly stderr: ReadableStream<Uint8Array>
  /** Rejects only when the environment is lost. */
  readonly exited: Promise<ProcessExit>
  /** SIGKILL to every descendant, wherever it fled; other signals to the process's group. Resolves when it is delivered. */
  kill(signal?: NodeJS.Signals): void
  /** Of a process with a `pty`; its programs are told by SIGWINCH. */
  resize?(size: TerminalSize): void
}

export interface FileInfo {
  name: string
  path: string
  type: 'file' | 'dir'
  size: number
  mode: number
  /** As ls prints them: `-rw-r--r--`. */
  permissions: string
  owner: string
  group: string
  modifiedTime: string
  symlinkTarget?: string
}

/** File operations, carried out inside the environment: a link can only lead to what is inside. Paths are absolute. */
export interface EnvironmentFiles {
  /** A regular file's bytes. Refused at once: a missing file, a directory, a FIFO, a device. */
  read(path: string, signal?: AbortSignal): Promise<{ size: number; body: ReadableStream<Uint8Array> }>
  /** Makes the parents, replaces what is there, keeps its mode. Resolves to the size written. */
  write(path: string, body: Uint8Array | ReadableStream<Uint8Array>, signal?: AbortSignal): Promise<number>
  info(path: string): Promise<FileInfo | undefined>
  /** Entries below a directory, `depth` levels of it (1: its own), sorted by path. */
  list(path: string, depth?: number): Promise<FileInfo[]>
  /** Parents too. False when it was there already. */
  makeDirectory(path: string): Promise<boolean>
  rename(from: string, to: string): Promise<void>
  /** A file, or a directory with all in it. */
  remove(path: string): Promise<void>
}

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

/** What answers a chat. Never throws for a model's or agent's failure; after `signal` it ends with every child dead. */
export interface Engine {
  readonly name: string
  run(turn: Turn, context: EngineContext): AsyncGenerator<EngineEvent, EngineEnd>
  /** Ends what it keeps between turns. No turn runs. */
  close?(): Promise<void>
}

export interface PluginContext {
  /** The server's data directory, absolute. */
  dataDirectory: string
  /** Takes a connection that a process in an environment made to the proxy's address inside. The bytes are not trusted. */
  serveProxy(environmentId: string, socket: Duplex): void
  /** Says one line to the operator. Never a secret. */
  log(line: string): void
}

export interface Plugin {
  name: string
  backend?(context: PluginContext): Backend
  engine?(context: PluginContext): Engine
}
