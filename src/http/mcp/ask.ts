import { ApiError, isErrorCode } from '../../errors.ts'
import { isObject, type JsonObject, objectOf } from '../../read/json.ts'

/** One request to the API. Tools do their work by such requests. */
export interface Question {
  method: 'GET' | 'POST' | 'DELETE'
  /** The path below the server's address, with its query. */
  path: string
  body?: object
  /** Asks for events in place of one JSON answer. */
  events?: true
  signal: AbortSignal
}

/** Sends a request to the API as the caller of the tool. The answer may be a refusal. */
export type Ask = (question: Question) => Promise<Response>

/** Returns the answer's JSON; undefined for an answer without a body. Throws the error that a refusal contains. */
export async function askJson(ask: Ask, question: Question): Promise<JsonObject | undefined> {
  const response = await assertDone(await ask(question))
  const text = await response.text()
  const value: unknown = text === '' ? undefined : JSON.parse(text)
  return Array.isArray(value) ? { items: value } : objectOf(value)
}

/** Throws the error that a refusal contains. */
export async function assertDone(response: Response): Promise<Response> {
  if (response.ok) return response
  const told: unknown = await response.json().catch(() => undefined)
  throw errorOf(isObject(told) ? told.error : undefined)
}

/** Reads the error from a refusal or from the last event of a stream. */
export function errorOf(told: unknown): ApiError {
  const { code, message } = objectOf(told) ?? {}
  const known = typeof code === 'string' && isErrorCode(code) ? code : 'internal_error'
  return new ApiError(known, typeof message === 'string' ? message : 'The server could not do this.')
}
