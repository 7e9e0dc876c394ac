import type { UserModelMessage } from 'ai'
import type { MessagePart } from '../../../src/plugin-api/index.ts'
import { objectOf } from '../../../src/read/json.ts'
import { cutMiddle } from '../tools/output.ts'
import type { ContextEntry } from './context-entries.ts'

/** A thread stores a summary as a tool call of this name: clients show it, and later turns begin with it. */
export const SUMMARY_TOOL = 'Compact'

export interface Summary {
  /** The key of the last entry that it covers. */
  through: string
  text: string
}

export function readSummary({ type, state, input, output }: MessagePart): Summary | undefined {
  if (type !== `tool-${SUMMARY_TOOL}` || state !== 'output-available' || typeof output !== 'string') return undefined
  const through = objectOf(input)?.through
  return typeof through === 'string' ? { through, text: output } : undefined
}

export const summaryMessage = (text: string): UserModelMessage => ({
  role: 'user',
  content: [
    {
      type: 'text',
      text: `<summary>\nThe conversation so far, summarised to save room. Go on from here without telling of it.\n\n${text}\n</summary>`,
    },
  ],
})

const MAX_REQUEST_CHARS = 8000

/** The user's last request, to quote beside a summary. Empty when there is no request. */
export function lastRequest(covered: readonly ContextEntry[]): string {
  for (const { message } of covered.toReversed()) {
    if (message.role !== 'user' || typeof message.content === 'string') continue
    const text = message.content.map(part => (part.type === 'text' ? part.text : '')).join('\n')
    // An earlier summary quotes it.
    const request = keptRequest(text) ?? text
    if (request.trim() === '') continue
    return `\n\nThe user's last message, word for word:\n<request>\n${cutMiddle(request, MAX_REQUEST_CHARS)}\n</request>`
  }
  return ''
}

function keptRequest(text: string): string | undefined {
  const [open, close] = ['<request>\n', '\n</request>']
  const [start, end] = [text.indexOf(open), text.lastIndexOf(close)]
  return start >= 0 && end >= start + open.length ? text.slice(start + open.length, end) : undefined
}
