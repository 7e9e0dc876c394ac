import type { Static, TObject } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { excerpt } from '../../bounds.ts'
import { ApiError } from '../../errors.ts'
import { faultOf } from '../../read/field-words.ts'
import { objectOf } from '../../read/json.ts'
import type { Ask } from './ask.ts'

/** Something that a model can do on this server. */
export interface Tool {
  name: string
  title: string
  /** The description that a model reads. */
  description: string
  input: TObject
  /** Whether the tool changes nothing. */
  isReadOnly?: boolean
  /** Whether the tool may remove or overwrite something. */
  isDestructive?: boolean
  /** Whether the tool may take long: then its answer is a stream for clients that accept one. */
  isLong?: boolean
  /** Runs the tool. Throws invalid_request with the name of the first wrong field when the input does not match `input`. */
  run(input: unknown, call: Call): Promise<Outcome>
}

/** A tool whose `run` gets checked input. */
interface Definition<Input extends TObject> extends Omit<Tool, 'input' | 'run'> {
  input: Input
  run(input: Static<Input>, call: Call): Promise<Outcome>
}

/** One use of a tool. */
export interface Call {
  ask: Ask
  /** Aborts when the client cancels the call or goes away. */
  signal: AbortSignal
  /** Reports progress to a client that asked for it. When several messages come in a short time, the client gets the last. */
  tell(message: string): void
}

export interface Outcome {
  /** The result as a model reads it. */
  text: string
  /** The complete result for a program; some clients show a model only this. */
  structured: object
  /** Whether the tool failed. */
  isError?: true
}

/** Makes a tool that checks its input before it runs. */
export const tool = <Input extends TObject>(definition: Definition<Input>): Tool => ({
  ...definition,
  async run(input, call) {
    assertInput(definition.input, input)
    return await definition.run(input, call)
  },
})

/** Throws invalid_request with the name of the first wrong field, never with its value. */
function assertInput<Schema extends TObject>(schema: Schema, input: unknown): asserts input is Static<Schema> {
  const given = objectOf(input)
  const unknownName = given && Object.keys(given).find(name => !Object.hasOwn(schema.properties, name))
  if (unknownName !== undefined)
    throw new ApiError(
      'invalid_request',
      `${excerpt(unknownName)}: not known here; there are ${Object.keys(schema.properties).join(', ')}`,
    )
  if (Value.Check(schema, input)) return
  const issue = Value.Errors(schema, input).First()
  const { field, what } = issue ? faultOf(issue) : { field: '', what: 'not valid' }
  throw new ApiError('invalid_request', `${field || 'arguments'}: ${what}`)
}
