import { CloneType, type Static, type TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { bounds } from '../bounds.ts'
import { ApiError } from '../errors.ts'
import { readBody } from '../read/bytes.ts'
import { faultOf } from '../read/field-words.ts'
import { shapeOf } from '../read/json.ts'
import { faultOfJson } from '../read/json-text.ts'
import { findContext } from './context.ts'
import { assertNames } from './unknown-fields.ts'

const { bodyBytes, jsonDepth, jsonValues } = bounds

/**
 * A route's parser and schema for a JSON body of any content type. It is checked here and not by Elysia, which takes
 * arrays for objects, needs seconds to describe a large wrong body, and repeats what was sent. `assertForm` throws for
 * faults that it can name better than the schema. `maxBytes`: for bodies that are read from anyone.
 */
export const json = <Schema extends TSchema>(
  schema: Schema,
  assertForm: (value: unknown) => void = () => {},
  maxBytes: number = bodyBytes,
) => ({
  parse: async ({ request }: { request: Request }) => {
    const value = await readJson(request, maxBytes)
    assertForm(value)
    return checked(schema, value)
  },
  body: described(schema),
})

/** As `json`; a missing body counts as an empty object. */
export const optionalJson = <Schema extends TSchema>(schema: Schema) => ({
  parse: async ({ request }: { request: Request }) => checked(schema, (await readJson(request)) ?? {}),
  body: described(schema),
})

/** Reads a request's JSON and checks it. Throws as `readJson` does, and invalid_request with the name of a wrong field. */
export const readJsonAs = async <Schema extends TSchema>(schema: Schema, request: Request) =>
  checked(schema, await readJson(request)) as Static<Schema>

/** Counts memory that a request's body takes, until the request is answered. Throws server_busy when all is taken. */
export function takeMemory(request: Request, bytes: number): void {
  if (findContext(request)?.bodyMemory?.grow(bytes) === false)
    throw new ApiError('server_busy', 'The bodies of other requests use all the memory for bodies: try again.')
}

/** Reads a request's JSON; null for an empty body. Throws payload_too_large, invalid_request, request_timeout, server_busy. */
export async function readJson(request: Request, maxBytes: number = bodyBytes): Promise<unknown> {
  const bytes = await readBody(request, maxBytes, { take: bytes => takeMemory(request, bytes) })
  if (!bytes) throw new ApiError('payload_too_large', `body: more than ${maxBytes} bytes`)
  return bytes.byteLength === 0 ? null : parse(bytes, 'body')
}

/** Parses JSON. Throws invalid_request that names `field`, also when the value is too deep or has too many parts. */
export function parse(bytes: Uint8Array, field: string): unknown {
  const wrong = (what: string) => new ApiError('invalid_request', `${field}: ${what}`, { field })
  const { depth, values } = shapeOf(bytes, { depth: jsonDepth, values: jsonValues })
  if (depth > jsonDepth) throw wrong(`nested deeper than ${jsonDepth} levels`)
  if (values > jsonValues) throw wrong(`more than ${jsonValues} values`)
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
  try {
    return JSON.parse(text)
  } catch {
    throw wrong(`not JSON: ${faultOfJson(text)}`)
  }
}

/** Checks a value. Throws invalid_request with the name of the first wrong field, never with its value. */
function checked(schema: TSchema, value: unknown): unknown {
  assertNames(schema, value)
  if (Value.Check(schema, value)) return value
  const issue = Value.Errors(schema, value).First()
  const { field, what } = issue ? faultOf(issue) : { field: '', what: 'not valid' }
  throw new ApiError('invalid_request', `${field || 'body'}: ${what}`, { field: field || 'body' })
}

/** The schema for Elysia's types and the API's description. Elysia allows other keys only where a schema says so. */
const described = <Schema extends TSchema>(schema: Schema) =>
  CloneType(schema, schema.additionalProperties === false ? {} : { additionalProperties: true })
