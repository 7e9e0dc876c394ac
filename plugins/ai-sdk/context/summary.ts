import type { UserModelMessage } from 'ai'
import type { MessagePart } from '../../../src/plugin-api/index.ts'
import { objectOf } from '../../../src/read/json.ts'
import { cutMiddle } from '../tools/output.ts'
import type { Entry } from './entries.ts'

/** A summary lies in the thread as a call of this name: clients show it, and later turns begin with it. */
export const SUMMARY_TOOL = 'Compact'

export interface Summary {
  /** The key of the last entry that it covers. */
  through: string
  text: string
}

export function summaryOf({ type, state, input, output }: MessagePart): Summary | undefined {
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

/** What the user last asked for, to go with a summary of it: the words count. Empty when they said nothing. */
export function lastRequest(covered: readonly Entry[]): string {
  for (const { message } of covered.toReversed()) {
    if (message.role !== 'user' || typeof message.content === 'string') continue
    const text = message.content.map(part => (part.type === 'text' ? part.text : '')).join('\n')
    // A summary before this one has kept it so.
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
