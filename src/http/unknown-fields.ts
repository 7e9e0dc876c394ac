import type { TSchema } from '@sinclair/typebox'
import { excerpt } from '../bounds.ts'
import { ApiError } from '../errors.ts'
import { countTypos } from '../read/closest.ts'
import { isObject, type JsonObject } from '../read/json.ts'

/** How many keys or items of each object and list are checked. */
const MAX_CHECKED = 100
/** Longer names are not compared: all known names are shorter. */
const MAX_NAME_LENGTH = 40

/**
 * Throws invalid_request for an unknown field whose name is close to a known one that is missing, as `env` is to `envs`:
 * ignoring it would lose it silently. Other unknown fields are ignored, unless the schema forbids them.
 */
export function assertNames(schema: TSchema, value: unknown, path = ''): void {
  if (Array.isArray(value) && isObject(schema.items)) {
    for (const [index, each] of value.slice(0, MAX_CHECKED).entries())
      assertNames(schema.items as unknown as TSchema, each, `${path}${index}.`)
    return
  }
  const known: Record<string, TSchema> | undefined = schema.properties
  if (!known || !isObject(value)) return
  let checked = 0
  for (const name in value) {
    if (++checked > MAX_CHECKED) return
    const field = Object.hasOwn(known, name) ? known[name] : undefined
    if (field) assertNames(field, value[name], `${path}${name}.`)
    else if (schema.additionalProperties !== true) assertUnknown(name, schema, value, path)
  }
}

function assertUnknown(name: string, schema: TSchema, value: JsonObject, path: string): void {
  const known: Record<string, TSchema> = schema.properties
  const required: readonly string[] = schema.required ?? []
  const meant = Object.keys(known).find(
    each => !(each in value) && isClose(name, each) && (required.includes(each) || mayBe(known[each], value[name])),
  )
  if (meant === undefined && schema.additionalProperties !== false) return
  const field = `${path}${excerpt(name)}`
  const remedy = meant === undefined ? `; ${Object.keys(known).join(', ')} are` : `; did you mean ${meant}?`
  throw new ApiError('invalid_request', `${field}: not known here${remedy}`, { field })
}

/** Stricter than `findClosest`: a client may send fields of its own, as `model` beside our `mode`. */
function isClose(name: string, known: string): boolean {
  if (name.length > MAX_NAME_LENGTH) return false
  const [given, meant] = [bare(name), bare(known)]
  if (given === meant || `${given}s` === meant || given === `${meant}s`) return true
  if (given.length > 3 && meant.startsWith(given) && /^(ms|usd|id)$/.test(meant.slice(given.length))) return true
  if (meant.length < 5 || Math.abs(given.length - meant.length) > 2) return false
  return countTypos(given, meant) <= (meant.length > 8 ? 2 : 1)
}

const bare = (name: string): string => name.replaceAll(/[_-]/g, '').toLowerCase()

/** Whether the value has the schema's type; true when the schema allows several types. */
function mayBe(schema: TSchema | undefined, value: unknown): boolean {
  const type = schema?.type
  if (type === 'array') return Array.isArray(value)
  if (type === 'object') return isObject(value)
  if (type === 'integer' || type === 'number') return typeof value === 'number' || typeof value === 'string'
  return type === 'string' ? typeof value === 'string' : true
}
