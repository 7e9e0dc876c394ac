import type { MessagePart } from '../plugin-api/index.ts'
import { isObject } from '../read/json.ts'

/** A table's row of a value: its optional fields are columns that can be null. */
export type Columns<Value> = {
  [Field in keyof Value]-?: Record<never, never> extends Pick<Value, Field> ? Value[Field] | null : Value[Field]
}

/** The value of a row: null in SQL is an absent optional field. */
export const present = <Value extends object>(row: Columns<Value>): Value =>
  Object.fromEntries(Object.entries(row).filter(([, field]) => field !== null)) as Value

/** A JSON column's value. Throws when `check` refuses it: another program wrote to the database. */
export function readJson<Value>(text: string, column: string, check: (value: unknown) => value is Value): Value {
  const value: unknown = JSON.parse(text)
  if (!check(value)) throw new Error(`The database holds an unreadable ${column}.`)
  return value
}

export const isStrings = (value: unknown): value is string[] =>
  Array.isArray(value) && value.every(item => typeof item === 'string')

export const isStringRecord = (value: unknown): value is Record<string, string> =>
  isObject(value) && isStrings(Object.values(value))

export const isParts = (value: unknown): value is MessagePart[] =>
  Array.isArray(value) && value.every(part => isObject(part) && typeof part.type === 'string')
