import type { ErrorCode } from '../../errors.ts'
import type { SpawnOptions, StartOptions, TerminalSize, WriteDetails } from '../../plugin-api/index.ts'
import type { Lane } from './call.ts'

/** What a server asks of a guest: the JSON that opens a call. */
export type GuestRequest =
  | SpawnRequest
  /** With `asDescriptor` the reply may name the guest's descriptor of the file: the server reads or writes that itself. */
  | { op: 'read'; path: string; asDescriptor?: boolean }
  /** `owner` and `attributes`, and the `details` below, are since version 2. */
  | ({ op: 'write'; path: string; asDescriptor?: boolean } & WriteDetails)
  | { op: 'info'; path: string; details?: boolean }
  | { op: 'list'; path: string; depth: number; details?: boolean }
  | { op: 'mkdir'; path: string; owner?: string }
  | { op: 'watch'; path: string; isRecursive: boolean }
  | { op: 'rename'; from: string; to: string }
  | { op: 'remove'; path: string }
  | { op: 'connect'; port: number }
  /** The server does not listen at the proxy's address itself. */
  | { op: 'listen-for-proxy' }
  /**
   * Listens for what the kernel redirects, from now on. The reply names descriptors of sockets to the kernel, for a server that may
   * change the network of the sandbox; the guest keeps them until the server closes the call.
   */
  | { op: 'listen-for-direct' }
  /** DNS messages of programs inside come down in the call, and their answers go up. */
  | { op: 'names' }
  /** Makes the socket of an SSH agent. The result has its path. */
  | { op: 'listen-for-ssh-agent' }
  /** Into the guest's table of processes: it stays when the server goes. */
  | { op: 'start'; options: StartOptions }
  | { op: 'processes' }
  | { op: 'process'; pid: number }
  | { op: 'output'; pid: number; offset: number; wait: boolean }
  | { op: 'input'; pid: number }
  | { op: 'end-input'; pid: number }
  | { op: 'signal'; pid: number; signal: NodeJS.Signals }
  | { op: 'resize'; pid: number; size: TerminalSize }
  | { op: 'forget'; pid: number }

export interface SpawnRequest extends CommandRequest {
  op: 'spawn'
  /** The guest may offer the pipes of the command's output: the server reads them itself. */
  takesOutputs?: boolean
}

export interface CommandRequest {
  /** The program and its arguments; without them `shell` is a line for bash, else sh. */
  argv?: string[]
  shell?: string
  cwd?: string
  env: Readonly<Record<string, string>>
  stdin: boolean
  /** A terminal of this size in place of pipes. */
  pty?: TerminalSize
  /** Since version 2. Absent: root inside. */
  user?: string
}

/** What a guest asks of a server with a connection that a program inside has made to any address. */
export interface DirectRequest {
  op: 'direct'
  address: string
  port: number
}

/** What a guest opens for programs inside that connect to the proxy; a server ends the channel of one with more at once. */
export const MAX_PROXY_CALLS = 256

export const commandOf = ({
  command,
  cwd,
  env = {},
  stdin = 'ignore',
  pty,
  user,
}: SpawnOptions & Pick<StartOptions, 'user'>): CommandRequest => ({
  env,
  ...(user !== undefined && { user }),
  stdin: stdin === 'pipe',
  ...(cwd !== undefined && { cwd }),
  ...(pty && { pty }),
  ...(typeof command === 'string' ? { shell: command } : { argv: [...command] }),
})

/** A control message of a spawn call. */
export interface ControlMessage {
  signal?: NodeJS.Signals
  resize?: TerminalSize
  reads?: OutputReads
}

/** The answer to an offer; without `isReading` also the one to `drain`, when the server has read all and reads no more. */
export interface OutputReads {
  lane: Lane
  isReading: boolean
}

/** A guest's message about a command's output. */
export interface OutputControl {
  /** The guest's descriptor of the pipe whose bytes are the lane's. Nothing of it has been read. */
  offered?: { lane: Lane; descriptor: number }
  /** The command has ended: the bytes that are in the pipe now are the rest of its output. */
  drain?: Lane
}

/** A control message of a write call. */
export interface WriteControl {
  /** The server will not write the whole file, so that the end of the lane is not the end of the file. */
  isIncomplete: true
}

/** A refusal of the guest, whose message the caller gets as it is. */
export class GuestError extends Error {
  constructor(
    readonly code: ErrorCode,
    message: string,
  ) {
    super(message)
  }
}
