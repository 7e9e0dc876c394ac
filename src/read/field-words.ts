import type { TSchema } from '@sinclair/typebox'
import { type ValueError, ValueErrorType } from '@sinclair/typebox/value'
import { excerpt } from '../bounds.ts'
import { fieldOf } from './json.ts'

/** What of a mistake is looked at; of a value of the caller's only whether it is there. */
export type Issue = Pick<ValueError, 'type' | 'schema' | 'path'> & Partial<Pick<ValueError, 'errors' | 'value'>>

/** What is looked at of a field's path: keys that a caller chose are parts of it. */
const MAX_PATH_LENGTH = 1000

/**
 * The field that is wrong, empty for the whole value, and in words what it must be. A schema says in `errorMessage` what
 * its pattern, or that of its keys, lets pass: an expression is never shown.
 */
export function faultOf(issue: Issue): { field: string; what: string } {
  const within = innerOf(issue)
  if (within) return faultOf(within)
  return { field: excerpt(fieldOf(issue.path.slice(0, MAX_PATH_LENGTH))), what: wordsOf(issue) }
}

/** Of a union's alternatives, the mistake in the one that was meant: the one whose mistakes are within it. */
function innerOf({ type, path, errors = [] }: Issue): Issue | undefined {
  if (type !== ValueErrorType.Union) return undefined
  const meant: Issue[] = []
  for (const each of errors) {
    const [first] = each
    // Another type, or another literal that says what it is: this one was not meant.
    if (!first || (first.path === path && kinds.has(first.type))) continue
    if (first.type === ValueErrorType.Literal || isTagged(first)) continue
    meant.push(first)
  }
  return meant.length === 1 ? meant[0] : undefined
}

const isTagged = ({ type, schema }: Issue): boolean =>
  type === ValueErrorType.Union && (schema.anyOf as TSchema[]).every(({ const: value }) => value !== undefined)

/** What each type is called. */
const kinds: ReadonlyMap<ValueErrorType, string> = new Map([
  [ValueErrorType.String, 'a text'],
  [ValueErrorType.Integer, 'a whole number'],
  [ValueErrorType.Number, 'a number'],
  [ValueErrorType.Boolean, 'true or false'],
  [ValueErrorType.Array, 'a list'],
  [ValueErrorType.Object, 'an object'],
  [ValueErrorType.Null, 'null'],
])

function wordsOf(issue: Issue): string {
  const { type, schema } = issue
  // A query's field that is missing is there for Elysia, without a value.
  if ('value' in issue && issue.value === undefined) return 'required'
  const kind = kinds.get(type)
  if (kind !== undefined) return `must be ${kind}`
  const own = typeof schema.errorMessage === 'string' ? schema.errorMessage : undefined
  switch (type) {
    case ValueErrorType.StringPattern:
      return own ?? 'has a character that is not allowed'
    case ValueErrorType.ObjectRequiredProperty:
      return 'required'
    case ValueErrorType.ObjectAdditionalProperties:
      return own ?? 'not known here'
    case ValueErrorType.Literal:
    case ValueErrorType.Union:
      return `must be ${namesOf(schema).join(' or ')}`
    case ValueErrorType.StringMinLength:
      return schema.minLength === 1 ? 'must not be empty' : `must have ${schema.minLength} characters or more`
    case ValueErrorType.StringMaxLength:
      return `must have no more than ${schema.maxLength} characters`
    case ValueErrorType.ArrayMinItems:
      return schema.minItems === 1 ? 'must not be empty' : `must have ${schema.minItems} items or more`
    case ValueErrorType.ArrayMaxItems:
      return `must have no more than ${schema.maxItems} items`
    case ValueErrorType.ObjectMaxProperties:
      return `must have no more than ${schema.maxProperties} entries`
    case ValueErrorType.IntegerMinimum:
    case ValueErrorType.NumberMinimum:
    case ValueErrorType.IntegerMaximum:
    case ValueErrorType.NumberMaximum:
      return rangeOf(schema)
    default:
      return 'not valid'
  }
}

function rangeOf({ minimum, maximum = Number.MAX_SAFE_INTEGER }: TSchema): string {
  const isOpen = maximum === Number.MAX_SAFE_INTEGER
  return isOpen ? `must be ${minimum} or more` : `must be a number from ${minimum} to ${maximum}`
}

/** A schema as one would name what it takes. */
function namesOf(schema: TSchema): string[] {
  if (Array.isArray(schema.anyOf)) return [...new Set((schema.anyOf as TSchema[]).flatMap(namesOf))]
  if (schema.const !== undefined) return [JSON.stringify(schema.const)]
  const names: Record<string, string> = {
    string: 'a text',
    integer: 'a whole number',
    number: 'a number',
    boolean: 'true or false',
    array: 'a list',
    object: 'an object',
    null: 'null',
  }
  return [names[String(schema.type)] ?? 'something else']
}
