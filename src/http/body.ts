import { CloneType, type Static, type TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { readBody } from '../bytes.ts'
import { ApiError } from '../errors.ts'
import { fieldOf } from '../json.ts'

/** Of a JSON body. */
export const MAX_BODY_BYTES = 10 * 1024 * 1024

/** What is nested deeper than this overflows the stack of whatever walks it later. */
const MAX_DEPTH = 256

/** Keys that a caller chose are parts of a field's name. */
const MAX_FIELD_LENGTH = 200

/**
 * A route's parser and schema for a JSON body, whatever content type it says. Checked here and not by Elysia, which
 * takes arrays for objects, takes seconds to describe a large body that is wrong, and shows what was sent.
 */
export const json = <Schema extends TSchema>(schema: Schema) => ({
  parse: ({ request }: { request: Request }) => readJsonAs(schema, request),
  body: described(schema),
})

/** As `json`, where no body is as good as an empty object. */
export const optionalJson = <Schema extends TSchema>(schema: Schema) => ({
  parse: async ({ request }: { request: Request }) => checked(schema, (await readJson(request)) ?? {}),
  body: described(schema),
})

/** A request's JSON that fits. Throws as `readJson` does, and invalid_request with the name of a field that does not fit. */
export const readJsonAs = async <Schema extends TSchema>(schema: Schema, request: Request) =>
  checked(schema, await readJson(request)) as Static<Schema>

/** A request's JSON; null for an empty body. Throws payload_too_large, invalid_request. */
export async function readJson(request: Request): Promise<unknown> {
  const bytes = await readBody(request, MAX_BODY_BYTES)
  if (!bytes) throw new ApiError('payload_too_large', `body: more than ${MAX_BODY_BYTES} bytes`)
  if (bytes.byteLength === 0) return null
  const value = parse(bytes.toString('utf8'))
  if (isDeeper(value, MAX_DEPTH)) throw new ApiError('invalid_request', `body: nested deeper than ${MAX_DEPTH} levels`)
  return value
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new ApiError('invalid_request', 'body: not JSON')
  }
}

/** The value, when it fits. Throws invalid_request with the name of the first field that does not, never its value. */
function checked(schema: TSchema, value: unknown): unknown {
  if (Value.Check(schema, value)) return value
  const issue = Value.Errors(schema, value).First()
  const field = fieldOf(issue?.path.slice(0, MAX_FIELD_LENGTH) ?? '') || 'body'
  throw new ApiError('invalid_request', `${field}: ${issue?.message ?? 'not valid'}`, { field })
}

/** For Elysia's types and the API's description: it closes a schema that it is given to keys that are not known. */
const described = <Schema extends TSchema>(schema: Schema) => CloneType(schema, { additionalProperties: true })

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  if (levels === 0) return true
  // Object.values takes seconds for an array of millions.
  for (const each of Array.isArray(value) ? value : Object.values(value)) if (isDeeper(each, levels - 1)) return true
  return false
}
