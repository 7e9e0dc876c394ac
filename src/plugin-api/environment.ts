import type { Duplex } from 'node:stream'
import type { NetworkSpec } from './backend.ts'
import type { EnvironmentCode } from './code.ts'
import type { EnvironmentProcesses } from './processes.ts'

export interface Environment {
  readonly id: string
  /** What confines it and what could not be limited here, in words for the operator. */
  readonly confinement: string[]
  /** Why it does not run, or did not start when it was to. Absent, or undefined: all is well. */
  readonly trouble?: string | undefined
  spawn(command: SpawnOptions): Promise<SandboxProcess>
  /** How this program's executable is run inside; its arguments follow. Absent where it is not inside. */
  readonly executable?: readonly string[]
  readonly files: EnvironmentFiles
  /** Absent: the server keeps processes itself, over `spawn`, and they end with it. */
  readonly processes?: EnvironmentProcesses
  /** A byte stream to a server on the environment's loopback. Rejects with `port_unreachable` when nothing listens. */
  connect(port: number): Promise<Duplex>
  /**
   * Where others reach a port without this server. Absent: nowhere. Whether something listens there is not asked; rejects
   * when the environment is gone.
   */
  hostOf?(port: number): Promise<PortHost>
  /** Ends every process and keeps the files; the next use starts it again. */
  pause?(): Promise<void>
  /** Resolves when the files that were written inside so far outlast a loss of power. Absent: that is not known. */
  sync?(): Promise<void>
  /** Of a backend whose egress is `own`: replaces what it may reach. When it resolves, the new rules hold. */
  setNetwork?(network: NetworkSpec): Promise<void>
  /** Absent: no environment of this backend has an interpreter of code cells. */
  readonly code?: EnvironmentCode
  /** Idempotent. When it resolves, nothing is left: processes, mounts, cgroups, files. */
  destroy(): Promise<void>
}

export interface PortHost {
  url: string
  /** What each request to it must show. Whoever has them has the port, for as long as the environment is there. */
  headers: Record<string, string>
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
  /**
   * Makes the parents, replaces what is there, keeps its owner and mode. Until all has come the path has what it had: a
   * body that breaks, an abort and a full disk leave that, and nothing beside it. Resolves to the size written.
   */
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
