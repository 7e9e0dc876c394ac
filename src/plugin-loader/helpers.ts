import type { Duplex } from 'node:stream'
import type { Environment, SpawnOptions } from '../plugin-api/index.ts'

/** What a plugin reports to a caller: the code decides the status. Never put a secret into the message or the details. */
export declare class ApiError extends Error {
  constructor(code: PluginErrorCode, message: string, details?: Readonly<Record<string, unknown>>)
  readonly code: string
}

export type PluginErrorCode =
  | 'invalid_request'
  | 'not_found'
  | 'file_not_found'
  | 'command_timeout'
  | 'conflict'
  | 'rate_limit_exceeded'
  | 'internal_error'
  | 'sandbox_unavailable'

/** What a caller may be told of any error's cause: the message, never a stack. */
export declare function messageOf(error: unknown): string

export interface ShellOptions extends Pick<SpawnOptions, 'command' | 'cwd' | 'env' | 'signal'> {
  timeoutMs?: number
  /** Each of stdout and stderr is kept up to this size (1 MiB); what comes after is read and dropped. */
  maxOutputBytes?: number
  /** Sees the output as it comes, before any cut. The command waits while it does. */
  onOutput?: (stream: 'stdout' | 'stderr', chunk: Uint8Array) => void | Promise<void>
}

export interface ShellResult {
  stdout: string
  stderr: string
  exitCode: number
  /** True when stdout or stderr was longer than what is given here. */
  truncated: boolean
}

/**
 * Runs a command to its end and keeps its output. Throws command_timeout with what was printed; rejects with the
 * signal's reason when it was aborted. Both after the whole process tree is dead.
 */
export declare function runShell(environment: Environment, options: ShellOptions): Promise<ShellResult>

/**
 * Fills a directory with what a guest needs to run on any Linux of this machine's kind: this executable, the loader and
 * the libraries that it needs. Idempotent. To be mounted read-only in an environment, or copied there.
 */
export declare function installGuest(directory: string): Promise<void>

/** The command that starts the guest, where `installGuest`'s directory is at this path. It serves a socket that listens as descriptor 3. */
export declare function guestCommand(directory: string): string[]

/** An environment's `executable`, where `installGuest`'s directory is at this path: agents' own tools run by it. */
export declare function executableInside(directory: string): string[]

/** The host's end of a guest: most of an environment. */
export interface GuestConnection extends Pick<Environment, 'spawn' | 'files' | 'connect'> {
  /** Processes that are still attached. */
  readonly activeCalls: number
  close(): void
  /** Resolves when the connection is gone; what ran in the foreground is killed by the guest. */
  readonly closed: Promise<void>
}

/** Resolves when the guest at the other end of the stream has said hello. `onProxy` takes what is to go to `serveProxy`. */
export declare function connectGuest(
  socket: Duplex,
  options?: { onProxy?: (socket: Duplex) => void },
): Promise<GuestConnection>
