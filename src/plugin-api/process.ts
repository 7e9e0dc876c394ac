/**
 * What to run in an environment, and how.
 *
 * @example
 * const child = await environment.spawn({ command: ['grep', '-rn', 'TODO', '.'], cwd: '/home/user/repo', signal })
 * const matches = await new Response(child.stdout).text()
 * const { exitCode } = await child.exited
 */
export interface SpawnOptions {
  /** The program and its arguments, or one line for the environment's shell (bash, else sh). */
  command: readonly string[] | string
  /** Absolute; /home/user when absent. */
  cwd?: string
  /** Added to the environment's PATH, HOME, USER, SHELL and locale (UTF-8). */
  env?: Readonly<Record<string, string>>
  /** `pipe`: the process reads `stdin` until it is ended. `ignore` (default): it reads end of file at once. */
  stdin?: 'pipe' | 'ignore'
  /** A terminal of this size instead of pipes: `stdout` has everything that is printed, `stdin` is the keyboard. */
  pty?: TerminalSize
  /** An abort kills the whole process tree; `exited` resolves once it is dead. */
  signal?: AbortSignal
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
  /** Ends when the process has ended, even if a background process that it started still holds it open. */
  readonly stdout: ReadableStream<Uint8Array>
  readonly stderr: ReadableStream<Uint8Array>
  /** Rejects only when the environment is lost. */
  readonly exited: Promise<ProcessExit>
  /** SIGKILL goes to every descendant, wherever it fled; other signals go to the process's group. */
  kill(signal?: NodeJS.Signals): void
  /** Present with `pty`. The programs in the terminal get SIGWINCH. */
  resize?(size: TerminalSize): void
}
