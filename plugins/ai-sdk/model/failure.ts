import { APICallError } from 'ai'
import { ApiError, messageOf } from '../../../src/errors.ts'
import type { EngineEnd } from '../../../src/plugin-api/index.ts'
import { objectOf } from '../../../src/read/json.ts'
import { CutStream } from './cut-stream.ts'

const MAX_MESSAGE_CHARS = 1000

export const failed = (code: string, message: string): EngineEnd => ({
  status: 'failed',
  error: { code, message: message.length > MAX_MESSAGE_CHARS ? `${message.slice(0, MAX_MESSAGE_CHARS)}…` : message },
})

/** The end of a turn whose model call failed, with a message for the user. */
export function explain(error: unknown): EngineEnd {
  if (error instanceof ApiError) return failed(error.code, error.message)
  if (error instanceof CutStream) return failed('model_failed', error.message)
  if (APICallError.isInstance(error)) {
    const { statusCode } = error
    if (statusCode === undefined) return failed('model_unreachable', `The model could not be reached: ${error.message}`)
    // The model accepted the request, but its answer could not be read.
    if (statusCode < 300)
      return failed('model_failed', `The model's answer broke off: ${describeError(error.cause ?? error)}`)
    return failed('model_refused', `The model answered ${statusCode}: ${error.message}`)
  }
  return failed('model_failed', `The model's answer broke off: ${describeError(error)}`)
}

/** Some providers put an object where an error should be. */
function describeError(error: unknown): string {
  const fields = error instanceof Error ? undefined : objectOf(error)
  if (!fields) return messageOf(error)
  return typeof fields.message === 'string' ? fields.message : JSON.stringify(fields)
}
