import { ApiError, isNoSpace, messageOf } from '../../src/errors.ts'

/** What the engine answers when it does not do what was asked. */
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

/** Some engines quote what they were sent. */
const MAX_MESSAGE_LENGTH = 500

/** What a caller is told of a failure; `what` did not work because of it. */
export function unavailable(what: string, error: unknown): ApiError {
  if (error instanceof ApiError) return error
  if (error instanceof EngineLost) return new ApiError('sandbox_unavailable', error.message)
  const message = messageOf(error).slice(0, MAX_MESSAGE_LENGTH)
  if (isNoSpace(message)) {
    return new ApiError('disk_full', `${what}: no space is left where the Docker engine keeps its data (${message})`)
  }
  return new ApiError('sandbox_unavailable', `${what}: ${message}`)
}
