import type { ToolResultPart } from 'ai'
import { isObject } from '../../../src/read/json.ts'

type ModelOutput = ToolResultPart['output']

/** A tool's output as a thread stores it: text, or texts and images. */
export type ToolOutput = string | OutputPart[]

export type OutputPart = { type: 'text'; text: string } | OutputImage

export interface OutputImage {
  type: 'image'
  mediaType: string
  /** Base64. */
  data: string
}

/** The most of one tool call that a model sees. */
export const MAX_OUTPUT_CHARS = 30_000

/** Keeps the beginning and the end, with a note on the part between them. */
export function cutMiddle(text: string, maxChars = MAX_OUTPUT_CHARS): string {
  if (text.length <= maxChars) return text
  const half = Math.floor(maxChars / 2)
  return `${text.slice(0, half)}${missing(text.length - 2 * half)}${text.slice(-half)}`
}

export const missing = (chars: number): string => `\n\n… [${chars} characters left out] …\n\n`

/** Keeps the beginning. */
export const cutEnd = (text: string, hint: string, maxChars = MAX_OUTPUT_CHARS): string =>
  text.length <= maxChars ? text : `${text.slice(0, maxChars)}\n\n[Cut at ${maxChars} characters. ${hint}]`

/** Converts a tool's output for the model. A stored output may be another engine's. */
export function toModelOutput(output: unknown): ModelOutput {
  if (typeof output === 'string') return { type: 'text', value: cutMiddle(output) }
  const parts = Array.isArray(output) ? output.filter(isOutputPart) : []
  if (parts.length === 0) return { type: 'text', value: cutMiddle(JSON.stringify(output) ?? 'null') }
  return {
    type: 'content',
    value: parts.map(part =>
      part.type === 'text'
        ? { type: 'text', text: cutMiddle(part.text) }
        : { type: 'file', mediaType: part.mediaType, data: { type: 'data', data: part.data } },
    ),
  }
}

export const toModelError = (message: string): ModelOutput => ({ type: 'error-text', value: cutMiddle(message) })

function isOutputPart(part: unknown): part is OutputPart {
  if (!isObject(part)) return false
  if (part.type === 'text') return typeof part.text === 'string'
  return part.type === 'image' && typeof part.mediaType === 'string' && typeof part.data === 'string'
}
