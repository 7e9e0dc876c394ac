import type { ToolResultPart } from 'ai'
import { type ContextEntry, estimateResultTokens, estimateTotalTokens } from './context-entries.ts'

const KEPT_CHARS = 300

/**
 * Shortens outputs of tool calls, the oldest first, until the entries take at most `goalTokens`. The newest, up to `spareTokens`,
 * stay whole. Gives new entries.
 */
export function shortenOutputs(
  entries: readonly ContextEntry[],
  goalTokens: number,
  spareTokens: number,
): ContextEntry[] {
  let total = estimateTotalTokens(entries)
  let after = total
  const shorten = (part: ToolResultPart): ToolResultPart => {
    const before = estimateResultTokens(part)
    after -= before
    if (total <= goalTokens || after < spareTokens) return part
    const shorter = { ...part, output: shortened(part.output) }
    total += estimateResultTokens(shorter) - before
    return shorter
  }
  return entries.map(entry => {
    const { message } = entry
    if (message.role === 'tool') {
      const content = message.content.map(part => (part.type === 'tool-result' ? shorten(part) : part))
      return { ...entry, message: { ...message, content } }
    }
    after -= estimateTotalTokens([entry])
    return entry
  })
}

function shortened(output: ToolResultPart['output']): ToolResultPart['output'] {
  if (output.type === 'content') {
    const text = output.value.map(part => (part.type === 'text' ? part.text : '(an image)')).join('\n')
    return { type: 'text', value: shortText(text) }
  }
  if (output.type !== 'text' && output.type !== 'error-text') return output
  return { ...output, value: shortText(output.value) }
}

const shortText = (text: string): string =>
  text.length <= KEPT_CHARS * 2
    ? text
    : `${text.slice(0, KEPT_CHARS)}… [old output: ${text.length - KEPT_CHARS} characters left out to save room]`
