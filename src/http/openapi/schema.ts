import type { TSchema } from '@sinclair/typebox'
import { isObject } from '../../read/json.ts'

type Json = Record<string, unknown>

/** Named types: schemas with a title, which are referred to by it. */
export type NamedSchemas = Record<string, unknown>

/**
 * A TypeBox schema as generators of clients read it best: literals as an enum, a map as `additionalProperties`, a titled
 * schema as a reference into `named`.
 */
export function describeSchema(schema: TSchema, named: NamedSchemas): unknown {
  const { title } = schema
  if (title === undefined) return plain(schema, named)
  named[title] ??= plain(schema, named)
  return { $ref: `#/components/schemas/${title}` }
}

function plain(schema: TSchema, named: NamedSchemas): unknown {
  const each = (schemas: unknown) => (Array.isArray(schemas) ? schemas.map(one => describeSchema(one, named)) : [])
  const { anyOf, items, properties, patternProperties, additionalProperties, ...rest } = schema
  const about: Json = Object.fromEntries(
    Object.entries(rest).filter(([name]) => name !== 'title' && name !== 'errorMessage'),
  )
  if (Array.isArray(anyOf)) return { ...about, ...describeUnion(anyOf, each) }
  if (items !== undefined) about.items = describeSchema(items as TSchema, named)
  if (isObject(properties)) {
    const all = Object.entries(properties).map(([name, one]) => [name, describeSchema(one as TSchema, named)])
    about.properties = Object.fromEntries(all)
    // Bodies may bring more than they need to, and answers may get more.
    about.additionalProperties = true
  }
  if (isObject(patternProperties)) {
    const [[pattern, value] = []] = Object.entries(patternProperties)
    about.additionalProperties = describeSchema(value as TSchema, named)
    if (pattern !== undefined && pattern !== '^(.*)$') about.propertyNames = { pattern }
  }
  return about
}

/** Literals of one type become an enum. */
function describeUnion(anyOf: TSchema[], each: (schemas: TSchema[]) => unknown[]): Json {
  const isLiteral = anyOf.every(({ const: value }) => typeof value === 'string')
  return isLiteral ? { type: 'string', enum: anyOf.map(({ const: value }) => value) } : { anyOf: each(anyOf) }
}
