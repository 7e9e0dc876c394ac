import { ApiError, type ErrorCode, messageOf } from '../../../errors.ts'

/** The codes of the Connect protocol, with the HTTP status of each in an answer that is not a stream. */
const statuses = {
  canceled: 499,
  unknown: 500,
  invalid_argument: 400,
  deadline_exceeded: 504,
  not_found: 404,
  already_exists: 409,
  permission_denied: 403,
  resource_exhausted: 429,
  failed_precondition: 400,
  unimplemented: 501,
  internal: 500,
  unavailable: 503,
  unauthenticated: 401,
} as const

export type ConnectCode = keyof typeof statuses

/** An error of the Connect protocol. */
export class ConnectError extends Error {
  constructor(
    readonly code: ConnectCode,
    message: string,
  ) {
    super(message)
  }

  get status(): number {
    return statuses[this.code]
  }

  toJSON() {
    return { code: this.code, message: this.message }
  }
}

/** The protocol's codes for those of the API. A code that is missing here becomes `internal`. */
const codes: Partial<Record<ErrorCode, ConnectCode>> = {
  invalid_request: 'invalid_argument',
  unauthorized: 'unauthenticated',
  forbidden: 'permission_denied',
  not_found: 'not_found',
  process_not_found: 'not_found',
  file_not_found: 'not_found',
  sandbox_not_found: 'unavailable',
  sandbox_unavailable: 'unavailable',
  server_busy: 'unavailable',
  shutting_down: 'unavailable',
  conflict: 'failed_precondition',
  payload_too_large: 'resource_exhausted',
  rate_limit_exceeded: 'resource_exhausted',
  disk_full: 'resource_exhausted',
  command_timeout: 'deadline_exceeded',
  request_timeout: 'deadline_exceeded',
}

/**
 * Turns any error into one of this protocol. An error that comes from neither the API nor this protocol keeps its message to
 * itself.
 */
export function toConnectError(error: unknown): ConnectError {
  if (error instanceof ConnectError) return error
  if (error instanceof ApiError) return new ConnectError(codes[error.code] ?? 'internal', messageOf(error))
  return new ConnectError('internal', 'The request failed.')
}
