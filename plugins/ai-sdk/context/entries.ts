import type { ModelMessage, ToolResultPart } from 'ai'

/** A message as the model gets it. */
export interface Entry {
  message: ModelMessage
  /** What it comes from in the thread: a message's id, or the id of the last tool call in it. A summary names it as its end. */
  key: string
}

const CHARS_PER_TOKEN = 4
const IMAGE_TOKENS = 1600

/** About how many tokens a message takes. Rather too many: the window is filled only in part. */
function tokensOf({ content }: ModelMessage): number {
  if (typeof content === 'string') return textTokens(content)
  let tokens = 4
  for (const part of content) {
    if (part.type === 'text' || part.type === 'reasoning') tokens += textTokens(part.text)
    else if (part.type === 'tool-call') tokens += textTokens(JSON.stringify(part.input) ?? '') + 10
    else if (part.type === 'tool-result') tokens += resultTokens(part)
    else tokens += IMAGE_TOKENS
  }
  return tokens
}

export function resultTokens({ output }: ToolResultPart): number {
  if (output.type === 'text' || output.type === 'error-text') return textTokens(output.value) + 10
  if (output.type !== 'content') return textTokens(JSON.stringify(output)) + 10
  return output.value.reduce((sum, part) => sum + (part.type === 'text' ? textTokens(part.text) : IMAGE_TOKENS), 10)
}

export const textTokens = (text: string): number => Math.ceil(text.length / CHARS_PER_TOKEN)

export const totalTokens = (entries: readonly Entry[]): number =>
  entries.reduce((sum, { message }) => sum + tokensOf(message), 0)
