import type { ProcessExit, SpawnOptions, TerminalSize } from './environment.ts'

/**
 * Processes that nobody has to stay connected to, each with the last of its output. They end with the environment's
 * processes, not with the server. All but `start` and `list` throw process_not_found for a pid that is not here.
 */
export interface EnvironmentProcesses {
  /** Throws `conflict` when too many run already; ended ones make room, the oldest first. */
  start(options: StartOptions): Promise<ProcessInfo>
  /** The oldest first. */
  list(): Promise<ProcessInfo[]>
  get(pid: number): Promise<ProcessInfo>
  /** What there is from a byte offset on, some hundred KB at most. With `wait` it waits until there is something. */
  read(pid: number, offset: number, options: { wait: boolean; signal?: AbortSignal }): Promise<OutputBatch>
  /** Resolves when the process has it in its pipe or terminal. Throws `conflict` when it takes no more. */
  write(pid: number, bytes: Uint8Array, signal?: AbortSignal): Promise<void>
  /** Ends the process's stdin after what was written. */
  closeStdin(pid: number): Promise<void>
  /** SIGKILL to every descendant, others to the process's group. Throws `conflict` when it has ended. */
  signal(pid: number, name: NodeJS.Signals): Promise<void>
  resize(pid: number, size: TerminalSize): Promise<void>
  /** Kills the tree and forgets the process. Resolves when nothing of it is alive. */
  remove(pid: number): Promise<void>
}

export interface StartOptions extends Omit<SpawnOptions, 'signal'> {
  /** For people; need not be unique. */
  name?: string
  /** Waits when what it printed and nobody has read would be overwritten; without it, it never waits. */
  waitForReader?: boolean
}

export interface ProcessInfo {
  pid: number
  name?: string
  /** For people: arguments joined by spaces, the end cut off when it is long. */
  command: string
  /** Takes input. */
  stdin: boolean
  pty?: TerminalSize
  startedAt: string
  endedAt?: string
  exit?: ProcessExit
  /** The output's bytes are counted over stdout and stderr together; those below `outputStart` are gone. */
  outputStart: number
  outputEnd: number
}

export type OutputStream = 'stdout' | 'stderr'

export interface OutputBatch {
  /** Of the first byte here: above what was asked for when that is gone, below when there is not so much. */
  offset: number
  pieces: { stream: OutputStream; bytes: Uint8Array }[]
  /** The process has ended, and there is no more. */
  exit?: ProcessExit
}
