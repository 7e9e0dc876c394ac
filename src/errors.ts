const statuses = {
  invalid_request: 400,
  git_clone_failed: 400,
  setup_failed: 400,
  unauthorized: 401,
  budget_exceeded: 402,
  forbidden: 403,
  not_found: 404,
  agent_not_found: 404,
  sandbox_not_found: 404,
  thread_not_found: 404,
  run_not_found: 404,
  message_not_found: 404,
  branch_not_found: 404,
  process_not_found: 404,
  approval_not_found: 404,
  call_not_found: 404,
  file_not_found: 404,
  method_not_allowed: 405,
  command_timeout: 408,
  request_timeout: 408,
  conflict: 409,
  run_active: 409,
  nothing_to_continue: 409,
  already_answered: 409,
  queue_full: 409,
  payload_too_large: 413,
  rate_limit_exceeded: 429,
  internal_error: 500,
  port_unreachable: 502,
  sandbox_unavailable: 503,
  server_busy: 503,
  shutting_down: 503,
  disk_full: 507,
} as const

/** Every code a caller can meet; stable, and listed in docs/api.md. */
export type ErrorCode = keyof typeof statuses

export const errorCodes = Object.keys(statuses).filter(isErrorCode)

export const statusOf = (code: ErrorCode): number => statuses[code]

export function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(statuses, code)
}

/** After so many seconds a request that was refused by these may go through. */
const retryAfterSeconds: Partial<Record<ErrorCode, number>> = { rate_limit_exceeded: 1, server_busy: 1 }

/** The limit on callers that was reached, for the answer's headers. */
export interface ReachedLimit {
  /** As `key.requests`. */
  limit: string
  count: number
  /** Of a rate; 0 for what is counted at once. */
  periodMs: number
  retryAfterSeconds: number
}

/** The only error a caller sees. `details` is shown to the caller too, beside code and message: never put a secret there. */
export class ApiError extends Error {
  override readonly name = 'ApiError'

  constructor(
    readonly code: ErrorCode,
    message: string,
    readonly details: Readonly<Record<string, unknown>> = {},
    readonly reached?: ReachedLimit,
  ) {
    super(message)
  }

  get status(): number {
    return statusOf(this.code)
  }

  /** Undefined where trying again is of no use, or nobody knows when it is. */
  get retryAfterSeconds(): number | undefined {
    return this.reached?.retryAfterSeconds ?? retryAfterSeconds[this.code]
  }

  /** The error body of every endpoint: clients read `error.message`, `error.code` or the top-level `message`. */
  toJSON() {
    return { error: { code: this.code, message: this.message, ...this.details }, message: this.message }
  }
}

/** What a caller may be told of any error's cause: the message, never a stack. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** What is refused, or was stopped, because the server's disk has too little space. */
export const noSpace = ({ freeMb, reserveMb }: { freeMb: number; reserveMb: number }): ApiError =>
  new ApiError(
    'disk_full',
    `The server's disk is full: ${freeMb} MB are free and ${reserveMb} MB are kept free. Delete sandboxes, or free space on it.`,
  )

/** Whether an error, or the words of a program, say that a disk has no room. */
export function isNoSpace(problem: unknown): boolean {
  const code = problem instanceof Error && 'code' in problem ? problem.code : undefined
  if (code === 'SQLITE_FULL' || code === 'ENOSPC' || code === 'EDQUOT') return true
  return /no space left on device|disk quota exceeded|ENOSPC/i.test(messageOf(problem))
}

const reasons: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EEXIST: 'there is something else by that name',
  EISDIR: 'is a directory',
  ENOENT: 'no such file or directory',
  ENOSPC: 'no space left on device',
  ENOTDIR: 'not a directory',
  EPERM: 'not permitted',
  EROFS: 'the file system is read-only',
}

/** The message for who typed a path: what the system refused, without codes and names of calls. */
export function wordsOf(error: unknown): string {
  const { code, path } = error instanceof Error ? (error as NodeJS.ErrnoException) : {}
  const reason = code === undefined ? undefined : reasons[code]
  return reason === undefined || path === undefined ? messageOf(error) : `${path}: ${reason}`
}
