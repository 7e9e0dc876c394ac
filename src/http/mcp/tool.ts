import type { Static, TObject } from '@sinclair/typebox'
import type { Ask } from './ask.ts'

/** Something that a model can do on this server. */
export interface Tool<Input extends TObject = TObject> {
  name: string
  title: string
  /** The description that a model reads. */
  description: string
  input: Input
  /** Whether the tool changes nothing. */
  isReadOnly?: boolean
  /** Whether the tool may remove or overwrite something. */
  isDestructive?: boolean
  /** Whether the tool may take long: then its answer is a stream for clients that accept one. */
  isLong?: boolean
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

/** Keeps a tool's own type of input within its definition. */
export const tool = <Input extends TObject>(definition: Tool<Input>): Tool => definition as unknown as Tool
