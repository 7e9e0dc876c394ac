import type { ErrorCode } from '../errors.ts'

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

export interface SpawnRequest {
  op: 'spawn'
  /** The program and its arguments; without them `shell` is a line for bash, else sh. */
  argv?: string[]
  shell?: string
  cwd?: string
  env: Readonly<Record<string, string>>
  stdin: boolean
}

/** What a guest opens for programs inside that connect to the proxy; a server ends the channel of one with more at once. */
export const MAX_PROXY_CALLS = 256

/** A control message of a spawn call. */
export interface KillMessage {
  signal: NodeJS.Signals
}

/** What a guest refuses, told to the caller as it is. */
export class GuestError extends Error {
  constructor(
    readonly code: ErrorCode,
    message: string,
  ) {
    super(message)
  }
}
