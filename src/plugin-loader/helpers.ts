import type { Duplex } from 'node:stream'
import type { Environment, SpawnOptions } from '../plugin-api/index.ts'

/**
 * An error that the API's caller sees: the code decides the HTTP status. Never put a secret into the message or details.
 *
 * @example
 * throw new ApiError('sandbox_unavailable', 'The host of this sandbox does not answer.')
 */
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

/**
 * The message of any error or thrown value, without a stack.
 *
 * @example
 * return { status: 'failed', error: { code: 'internal_error', message: messageOf(error) } }
 */
export declare function messageOf(error: unknown): string

export interface ShellOptions extends Pick<SpawnOptions, 'command' | 'cwd' | 'env' | 'signal'> {
  timeoutMs?: number
  /** How much of each of stdout and stderr is kept (default 1 MiB); the rest is read and dropped. */
  maxOutputBytes?: number
  /** Gets all output as it comes. The command waits for it. */
  onOutput?: (stream: 'stdout' | 'stderr', chunk: Uint8Array) => void | Promise<void>
}

export interface ShellResult {
  stdout: string
  stderr: string
  exitCode: number
  /** True when stdout or stderr is cut off here. */
  truncated: boolean
}

/**
 * Runs a command to its end and keeps its output. Rejects with command_timeout, whose details have the output, or after an
 * abort with the signal's reason; in both cases once the whole process tree is dead.
 *
 * @example
 * const { stdout, exitCode } = await runShell(environment, { command: 'git status --short', timeoutMs: 10_000 })
 */
export declare function runShell(environment: Environment, options: ShellOptions): Promise<ShellResult>

/**
 * Fills a directory with everything that the guest needs on any Linux of this machine's architecture: this executable, the
 * loader and its libraries. Mount it read-only in an environment, or copy it there. Idempotent.
 *
 * @example
 * await installGuest('/var/lib/machines/guest')
 * await machine.run(guestCommand('/opt/threadbox'), { mounts: { '/opt/threadbox': '/var/lib/machines/guest' } })
 */
export declare function installGuest(directory: string): Promise<void>

/** The command that starts the guest, with `installGuest`'s directory at this path. The guest serves the listening socket at descriptor 3. */
export declare function guestCommand(directory: string): string[]

/** The value for `Environment.executable`, with `installGuest`'s directory at this path. Agents' own tools run by it. */
export declare function executableInside(directory: string): string[]

/** The host's end of a guest. It brings most of an environment. */
export interface GuestConnection extends Pick<Environment, 'spawn' | 'files' | 'connect'> {
  /** Processes that are still attached. */
  readonly activeCalls: number
  close(): void
  /** Resolves when the connection is gone. The guest then kills what ran in the foreground. */
  readonly closed: Promise<void>
}

/**
 * Connects to the guest at the other end of a stream. Resolves when the guest has answered. Pass the connections that
 * `onProxy` gets to `PluginContext.serveProxy`.
 *
 * @example
 * const guest = await connectGuest(socket, { onProxy: each => context.serveProxy(environmentId, each) })
 * const child = await guest.spawn({ command: 'uname -a' })
 */
export declare function connectGuest(
  socket: Duplex,
  options?: { onProxy?: (socket: Duplex) => void },
): Promise<GuestConnection>
