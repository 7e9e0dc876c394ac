import type { ErrorCode } from '../../errors.ts'
import type { SpawnOptions, StartOptions, TerminalSize } from '../../plugin-api/index.ts'

/** What a server asks of a guest: the JSON that opens a call. */
export type GuestRequest =
  | SpawnRequest
  | { op: 'read'; path: string }
  | { op: 'write'; path: string }
  | { op: 'info'; path: string }
  | { op: 'list'; path: string; depth: number }
  | { op: 'mkdir'; path: string }
  | { op: 'rename'; from: string; to: string }
  | { op: 'remove'; path: string }
  | { op: 'connect'; port: number }
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
}

/** What a guest opens for programs inside that connect to the proxy; a server ends the channel of one with more at once. */
export const MAX_PROXY_CALLS = 256

export const commandOf = ({ command, cwd, env = {}, stdin = 'ignore', pty }: SpawnOptions): CommandRequest => ({
  env,
  stdin: stdin === 'pipe',
  ...(cwd !== undefined && { cwd }),
  ...(pty && { pty }),
  ...(typeof command === 'string' ? { shell: command } : { argv: [...command] }),
})

/** A control message of a spawn call. */
export interface ControlMessage {
  signal?: NodeJS.Signals
  resize?: TerminalSize
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
