import type { Static, TObject } from '@sinclair/typebox'
import type { Ask } from './ask.ts'

/** What a model may do by this server. */
export interface Tool<Input extends TObject = TObject> {
  name: string
  title: string
  /** For the model. */
  description: string
  input: Input
  /** It changes nothing. */
  isReadOnly?: boolean
  /** It may take away what was there. */
  isDestructive?: boolean
  /** It may take long: its answer is a stream for clients that take one. */
  isLong?: boolean
  run(input: Static<Input>, call: Call): Promise<Outcome>
}

/** One use of a tool. */
export interface Call {
  ask: Ask
  /** Aborts when the client cancels the call or goes away. */
  signal: AbortSignal
  /** Tells a client that wants to know what goes on. Of many words in a short time it hears the last. */
  tell(message: string): void
}

export interface Outcome {
  /** For a model. */
  text: string
  /** The same for a program, whole: some clients show a model only this. */
  structured: object
  /** The tool did not do what it was asked for. */
  isError?: true
}

/** Keeps a tool's own type of input within its definition. */
export const tool = <Input extends TObject>(definition: Tool<Input>): Tool => definition as unknown as Tool
