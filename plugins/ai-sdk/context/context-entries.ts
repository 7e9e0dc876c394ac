import type { ModelMessage, ToolResultPart } from 'ai'

/** A message of the model's context. */
export interface ContextEntry {
  message: ModelMessage
  /** Its origin in the thread: a message's id, or the id of the last tool call in it. A summary refers to its last entry by this. */
  key: string
}

const CHARS_PER_TOKEN = 4
const IMAGE_TOKENS = 1600

/** Estimates a message's tokens, rather too many than too few. */
function estimateTokens({ content }: ModelMessage): number {
  if (typeof content === 'string') return estimateTextTokens(content)
  let tokens = 4
  for (const part of content) {
    if (part.type === 'text' || part.type === 'reasoning') tokens += estimateTextTokens(part.text)
    else if (part.type === 'tool-call') tokens += estimateTextTokens(JSON.stringify(part.input) ?? '') + 10
    else if (part.type === 'tool-result') tokens += estimateResultTokens(part)
    else tokens += IMAGE_TOKENS
  }
  return tokens
}

export function estimateResultTokens({ output }: ToolResultPart): number {
  if (output.type === 'text' || output.type === 'error-text') return estimateTextTokens(output.value) + 10
  if (output.type !== 'content') return estimateTextTokens(JSON.stringify(output)) + 10
  return output.value.reduce(
    (sum, part) => sum + (part.type === 'text' ? estimateTextTokens(part.text) : IMAGE_TOKENS),
    10,
  )
}

export const estimateTextTokens = (text: string): number => Math.ceil(text.length / CHARS_PER_TOKEN)

export const estimateTotalTokens = (entries: readonly ContextEntry[]): number =>
  entries.reduce((sum, { message }) => sum + estimateTokens(message), 0)
