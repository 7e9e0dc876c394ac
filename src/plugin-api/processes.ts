import type { ProcessExit, SpawnOptions, TerminalSize } from './process.ts'

/**
 * Background processes, each with the last of its output. They need no connection, and outlive the server. All methods but
 * `start` and `list` throw process_not_found for an unknown pid.
 *
 * @example
 * const { pid } = await environment.processes.start({ command: 'npm run dev', name: 'web' })
 * const { pieces } = await environment.processes.read(pid, 0, { wait: true })
 */
export interface EnvironmentProcesses {
  /** Throws `conflict` when too many are running. Forgets ended ones to make room, the oldest first. */
  start(options: StartOptions): Promise<ProcessInfo>
  /** Lists the oldest first. */
  list(): Promise<ProcessInfo[]>
  get(pid: number): Promise<ProcessInfo>
  /** Reads from a byte offset, some hundred KB at most. With `wait` it waits until there is something to read: beyond all output, for the end. */
  read(pid: number, offset: number, options: { wait: boolean; signal?: AbortSignal }): Promise<OutputBatch>
  /** Resolves when the bytes are in the process's pipe or terminal. Throws `conflict` when it takes no more input. */
  write(pid: number, bytes: Uint8Array, signal?: AbortSignal): Promise<void>
  /** Ends the process's stdin, after everything that was written. Does nothing when the process has ended. */
  closeStdin(pid: number): Promise<void>
  /** SIGKILL goes to every descendant, other signals to the process's group. Throws `conflict` when the process has ended. */
  signal(pid: number, name: NodeJS.Signals): Promise<void>
  resize(pid: number, size: TerminalSize): Promise<void>
  /** Kills the process tree and forgets the process. Resolves when the whole tree is dead. */
  remove(pid: number): Promise<void>
}

export interface StartOptions extends Omit<SpawnOptions, 'signal'> {
  /** Shown to people; need not be unique. */
  name?: string
  /**
   * True: the process waits while its unread output fills the buffer. False (default): the oldest output is overwritten.
   * `attached`: it waits for readers that read on, and not once nothing was read for ten seconds.
   */
  waitForReader?: boolean | 'attached'
  /**
   * The user that runs it, by a name in the environment's /etc/passwd, with HOME and USER. Where there is no such user, or users cannot
   * be changed, the environment's own user runs it.
   */
  user?: string
}

export interface ProcessInfo {
  pid: number
  name?: string
  /** Shown to people: the arguments joined by spaces, cut off when they are long. */
  command: string
  /** True when it takes input. */
  stdin: boolean
  pty?: TerminalSize
  startedAt: string
  endedAt?: string
  exit?: ProcessExit
  /** Offsets count the bytes of stdout and stderr together; the bytes below `outputStart` are gone. */
  outputStart: number
  outputEnd: number
}

export type OutputStream = 'stdout' | 'stderr'

export interface OutputBatch {
  /** The offset of the first byte here: higher than requested when those bytes are gone, lower when there are fewer. */
  offset: number
  pieces: { stream: OutputStream; bytes: Uint8Array }[]
  /** Present when the process has ended and there is no more output. */
  exit?: ProcessExit
}
