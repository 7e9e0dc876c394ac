import { APICallError } from 'ai'
import { ApiError, messageOf } from '../../src/errors.ts'
import type { EngineEnd } from '../../src/plugin.ts'

const MAX_MESSAGE_CHARS = 1000

export const failed = (code: string, message: string): EngineEnd => ({
  status: 'failed',
  error: { code, message: message.length > MAX_MESSAGE_CHARS ? `${message.slice(0, MAX_MESSAGE_CHARS)}…` : message },
})

/** A model call's failure, in words for who chats. */
export function explain(error: unknown): EngineEnd {
  if (error instanceof ApiError) return failed(error.code, error.message)
  if (APICallError.isInstance(error)) {
    const { statusCode } = error
    return statusCode === undefined
      ? failed('model_unreachable', `The model could not be reached: ${error.message}`)
      : failed('model_refused', `The model answered ${statusCode}: ${error.message}`)
  }
  return failed('model_failed', `The model's answer broke off: ${saying(error)}`)
}

/** Some providers put an object where an error should be. */
function saying(error: unknown): string {
  if (typeof error !== 'object' || error === null || error instanceof Error) return messageOf(error)
  const { message } = { message: undefined, ...error }
  return typeof message === 'string' ? message : JSON.stringify(error)
}
