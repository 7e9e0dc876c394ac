import { ApiError, isNoSpace, messageOf } from '../../src/errors.ts'

/** The engine refused a call. */
export class EngineError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message)
  }
}

/** The engine did not answer: it is down, restarting or stuck. */
export class EngineLost extends Error {}

export const isMissing = (error: unknown): boolean => error instanceof EngineError && error.status === 404
export const isConflict = (error: unknown): boolean => error instanceof EngineError && error.status === 409

/** Some engines quote the whole request. */
const MAX_MESSAGE_LENGTH = 500

/** Translates a failure into the error that a caller sees; `what` says what did not work. */
export function unavailable(what: string, error: unknown): ApiError {
  if (error instanceof ApiError) return error
  if (error instanceof EngineLost) return new ApiError('sandbox_unavailable', error.message)
  const message = messageOf(error).slice(0, MAX_MESSAGE_LENGTH)
  if (isNoSpace(message)) {
    return new ApiError('disk_full', `${what}: no space is left where the Docker engine keeps its data (${message})`)
  }
  return new ApiError('sandbox_unavailable', `${what}: ${message}`)
}
