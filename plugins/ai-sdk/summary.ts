import type { UserModelMessage } from 'ai'
import type { MessagePart } from '../../src/plugin.ts'

/** A summary lies in the thread as a call of this name: clients show it, and later turns begin with it. */
export const SUMMARY_TOOL = 'Compact'

export interface Summary {
  /** The key of the last entry that it covers. */
  through: string
  text: string
}

export function summaryOf({ type, state, input, output }: MessagePart): Summary | undefined {
  if (type !== `tool-${SUMMARY_TOOL}` || state !== 'output-available' || typeof output !== 'string') return undefined
  const through = typeof input === 'object' && input !== null && 'through' in input ? input.through : undefined
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
