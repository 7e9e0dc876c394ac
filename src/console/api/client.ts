import createClient from 'openapi-fetch'
import type { components, paths } from './schema.d.ts'

/** What the API answers, by the names of its description. */
export type Schemas = components['schemas']

export interface Fault {
  field: string
  message: string
}

/** A request that the server refused. `message` is for people, `code` is stable. */
export class RequestError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly code: string,
    /** The fields that are wrong, each in the server's words. */
    readonly faults: readonly Fault[] = [],
  ) {
    super(message)
  }
}

/** The API by the browser's session: the cookie goes along, and no key is ever kept here. */
export const api = createClient<paths>({ baseUrl: '/', credentials: 'same-origin' })

/** The data of an answer. Throws a RequestError when the server refused. */
export async function take<Data>(
  answering: Promise<{ data?: Data; error?: unknown; response: Response }>,
): Promise<NonNullable<Data>> {
  const { data, error, response } = await answering
  if (!response.ok) throw toRequestError(error, response.status)
  // Without a body there is nothing to take.
  return (data ?? {}) as NonNullable<Data>
}

/** Reads the error of an answer that `fetch` gave. */
export async function refusalOf(response: Response): Promise<RequestError> {
  return toRequestError(await response.json().catch(() => undefined), response.status)
}

function toRequestError(body: unknown, status: number): RequestError {
  const { error } = (body ?? {}) as {
    error?: { code?: unknown; message?: unknown; field?: unknown; faults?: readonly Fault[] }
  }
  const message = typeof error?.message === 'string' ? error.message : `The server answered with status ${status}.`
  const faults = error?.faults ?? (typeof error?.field === 'string' ? [{ field: error.field, message }] : [])
  return new RequestError(message, status, typeof error?.code === 'string' ? error.code : 'unknown', faults)
}
