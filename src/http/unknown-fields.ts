import type { TSchema } from '@sinclair/typebox'
import { distance } from 'fastest-levenshtein'
import { excerpt } from '../bounds.ts'
import { ApiError } from '../errors.ts'
import { isObject, type JsonObject } from '../read/json.ts'

/** What is looked at of each object and list: a mistyped name is among the first. */
const MAX_LOOKED_AT = 100
/** Names of ours are shorter. */
const MAX_NAME_LENGTH = 40

/**
 * Throws invalid_request for a field that is not known and close to one that is and is missing, as `env` is to `envs`:
 * ignored, it would be lost without a word. Other unknown fields are ignored, but where the schema has no others.
 */
export function assertNames(schema: TSchema, value: unknown, path = ''): void {
  if (Array.isArray(value) && isObject(schema.items)) {
    for (const [index, each] of value.slice(0, MAX_LOOKED_AT).entries())
      assertNames(schema.items as unknown as TSchema, each, `${path}${index}.`)
    return
  }
  const known: Record<string, TSchema> | undefined = schema.properties
  if (!known || !isObject(value)) return
  let looked = 0
  for (const name in value) {
    if (++looked > MAX_LOOKED_AT) return
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

/** Stricter than for words of a command: a client may send fields of its own, as `model` beside our `mode`. */
function isClose(name: string, known: string): boolean {
  if (name.length > MAX_NAME_LENGTH) return false
  const [given, meant] = [bare(name), bare(known)]
  if (given === meant || `${given}s` === meant || given === `${meant}s`) return true
  if (given.length > 3 && meant.startsWith(given) && /^(ms|usd|id)$/.test(meant.slice(given.length))) return true
  if (meant.length < 5 || Math.abs(given.length - meant.length) > 2) return false
  const steps = distance(given, meant)
  const areSwapped = steps === 2 && given.length === meant.length && sorted(given) === sorted(meant)
  return steps === 1 || areSwapped || (steps === 2 && meant.length > 8)
}

const bare = (name: string): string => name.replaceAll(/[_-]/g, '').toLowerCase()

const sorted = (name: string): string => [...name].sort().join('')

/** Whether the value is of the type that the schema wants; true where that is not one type. */
function mayBe(schema: TSchema | undefined, value: unknown): boolean {
  const type = schema?.type
  if (type === 'array') return Array.isArray(value)
  if (type === 'object') return isObject(value)
  if (type === 'integer' || type === 'number') return typeof value === 'number' || typeof value === 'string'
  return type === 'string' ? typeof value === 'string' : true
}
