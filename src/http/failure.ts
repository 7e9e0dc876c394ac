import { ParseError } from 'elysia'
import { toBusyError } from '../core/commit.ts'
import type { Log } from '../core/runtime.ts'
import { ApiError, isNoSpace } from '../errors.ts'
import { faultOf, type Issue } from '../read/field-words.ts'
import { limitHeaders } from './limit-headers.ts'

/** The answer to a request that failed. An unknown error is logged once, with the request's id, which the answer contains. */
export function failureResponse(error: unknown, log: Log, requestId?: string): Response {
  // Elysia wraps errors of a parser.
  const cause = error instanceof ParseError ? error.cause : error
  const busy = toBusyError(cause)
  const known =
    cause instanceof ApiError
      ? cause
      : (busy ?? validationError(cause) ?? diskError(cause) ?? unknownError(cause, log, requestId))
  const seconds = known.retryAfterSeconds
  return Response.json(known, {
    status: known.status,
    ...(seconds !== undefined && { headers: { 'retry-after': String(seconds) } }),
    ...(known.reached && { headers: limitHeaders(known.reached) }),
  })
}

/** The server's own disk is full. */
function diskError(error: unknown): ApiError | undefined {
  if (!isNoSpace(error)) return undefined
  return new ApiError('disk_full', "There is no room on the server's disk; nothing of this was stored.")
}

/** Translates Elysia's error about a query or path. It names the field, and never repeats its value. */
function validationError(error: unknown): ApiError | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined
  if (error.code !== 'VALIDATION' || !('all' in error) || !('type' in error)) return undefined
  if (error.type === 'response') return undefined
  // The path cannot be decoded, so there is nothing at it.
  if (error.type === 'params') return new ApiError('not_found', 'There is no such endpoint.')
  const [issue] = error.all as (Issue | undefined)[]
  const { field, what } = issue ? faultOf(issue) : { field: '', what: 'not valid' }
  const name = field || String(error.type)
  return new ApiError('invalid_request', `${name}: ${what}`, { field: name })
}

function unknownError(error: unknown, log: Log, id: string = crypto.randomUUID()): ApiError {
  log(`error ${id}: ${error instanceof Error ? error.stack : String(error)}`, 'error')
  return new ApiError('internal_error', `Something went wrong in the server; its log has it as ${id}.`, { id })
}

/** The last event of a stream that failed. An unknown error gets `message`: the stream shows no internals. */
export function errorEvent(error: unknown, message: string): { type: 'error'; code: string; message: string } {
  const known = error instanceof ApiError ? error : new ApiError('internal_error', message)
  return { type: 'error', code: known.code, message: known.message }
}
