import { ApiError, isErrorCode } from '../../errors.ts'
import { isObject, type JsonObject, objectOf } from '../../read/json.ts'

/** One request of the API, as what a tool does is made of. */
export interface Question {
  method: 'GET' | 'POST' | 'DELETE'
  /** Below the server's address, with its query. */
  path: string
  body?: object
  /** Asks for events in place of one JSON answer. */
  events?: true
  signal: AbortSignal
}

/** Asks a route of the API, as the caller of the tool. The answer may be a refusal. */
export type Ask = (question: Question) => Promise<Response>

/** The answer's JSON; undefined for an answer without a body. Throws the error that it has in place of it. */
export async function askJson(ask: Ask, question: Question): Promise<JsonObject | undefined> {
  const response = await assertDone(await ask(question))
  const text = await response.text()
  const value: unknown = text === '' ? undefined : JSON.parse(text)
  return Array.isArray(value) ? { items: value } : objectOf(value)
}

/** Throws the error that a refusal tells. */
export async function assertDone(response: Response): Promise<Response> {
  if (response.ok) return response
  const told: unknown = await response.json().catch(() => undefined)
  throw errorOf(isObject(told) ? told.error : undefined)
}

/** The error that a refusal or the last event of a stream tells. */
export function errorOf(told: unknown): ApiError {
  const { code, message } = objectOf(told) ?? {}
  const known = typeof code === 'string' && isErrorCode(code) ? code : 'internal_error'
  return new ApiError(known, typeof message === 'string' ? message : 'The server could not do this.')
}
