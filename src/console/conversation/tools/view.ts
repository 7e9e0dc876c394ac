import type { ReactNode } from 'react'

/** Shows the input and the output of a call. Both are whatever the model and the tool have made: nothing of them is sure. */
export type ToolView = (call: { input: unknown; output: unknown }) => ReactNode

/** A field of an input; undefined when it is no text. */
export function textField(input: unknown, name: string): string | undefined {
  const value: unknown = typeof input === 'object' && input !== null ? Reflect.get(input, name) : undefined
  return typeof value === 'string' ? value : undefined
}

/** Reads a list from a call’s input. Returns an empty list when the field is no list. */
export function listField(input: unknown, name: string): readonly unknown[] {
  const value: unknown = typeof input === 'object' && input !== null ? Reflect.get(input, name) : undefined
  return Array.isArray(value) ? value : []
}

/** An output as text: tools give text, or parts of text, or JSON. */
export function textOfOutput(output: unknown): string {
  if (output === undefined) return ''
  if (typeof output === 'string') return output
  const parts = Array.isArray(output) ? output : listField(output, 'content')
  const texts = parts.flatMap(part => textField(part, 'text') ?? [])
  return texts.length > 0 ? texts.join('\n') : JSON.stringify(output, null, 2)
}
