import type { MessagePart, StoredMessage, Turn } from '../../src/plugin-api/index.ts'
import { objectOf } from '../../src/read/json.ts'
import { describeDecisions, describeDenial, NOT_DECIDED } from './decisions.ts'

/** A part of the prompt that a program gets. */
export type PromptPart = { type: 'text'; text: string } | { type: 'image'; mediaType: string; data: string }

/** A program that was no part of a conversation gets at most this much of its end. */
const MAX_TRANSCRIPT_CHARS = 200_000
const MAX_OUTPUT_CHARS = 2000

/** How much of the earlier conversation a program gets again. */
export type Recap = 'nothing' | 'last turn' | 'all'

/** The turn's own messages, after the recap. For a turn that goes on: what was decided on the calls that waited. */
export function toPrompt(turn: Turn, recap: Recap): PromptPart[] {
  const { prompt, continues } = turn
  const parts: PromptPart[] = continues
    ? [{ type: 'text', text: describeDecisions(continues) }]
    : prompt.flatMap(toParts)
  const history = continues && !continues.isLate ? [...turn.history, ...prompt, continues.reply] : turn.history
  const from = recap === 'all' ? 0 : recap === 'nothing' ? history.length : findLastTurn(history)
  const transcript = toTranscript(history.slice(from))
  return transcript ? [{ type: 'text', text: transcript }, ...parts] : parts
}

export const toParts = ({ parts }: StoredMessage): PromptPart[] => parts.flatMap(toPromptParts)

const findLastTurn = (history: readonly StoredMessage[]): number =>
  Math.max(
    history.findLastIndex(({ role }) => role === 'user'),
    0,
  )

function toPromptParts(part: MessagePart): PromptPart[] {
  if (part.type === 'text' && typeof part.text === 'string') return [{ type: 'text', text: part.text }]
  // Only images inside the message: a fetch could reach an address that the user must not reach.
  const url = part.type === 'file' ? part.url : part.type === 'data-image' ? objectOf(part.data)?.url : undefined
  if (typeof url !== 'string') return []
  const [, mediaType, data] = /^data:(image\/[a-z.+-]+);base64,([A-Za-z0-9+/=]+)$/.exec(url) ?? []
  return mediaType && data ? [{ type: 'image', mediaType, data }] : []
}

/** A conversation as text: a program's protocol takes no history from elsewhere. */
function toTranscript(history: readonly StoredMessage[]): string {
  const text = history.map(({ role, parts }) => `${names[role]}: ${parts.flatMap(toText).join('\n')}`).join('\n\n')
  if (!text) return ''
  const kept = text.length > MAX_TRANSCRIPT_CHARS ? `…${text.slice(-MAX_TRANSCRIPT_CHARS)}` : text
  return `<conversation>\nWhat was said in this conversation before:\n\n${kept}\n</conversation>`
}

const names = { user: 'User', assistant: 'You', system: 'System' } as const

function toText(part: MessagePart): string[] {
  const { type, text, input } = part
  if (type === 'text' && typeof text === 'string') return [text]
  if (!type.startsWith('tool-')) return []
  const result = toResult(part)
  const call = `${type.slice('tool-'.length)} ${JSON.stringify(input) ?? ''}`
  return [`[${cut(call)} gave: ${cut(result ?? '')}]`]
}

function toResult({ state, output, errorText, approval }: MessagePart): string | undefined {
  if (state === 'output-denied') {
    const reason = objectOf(approval)?.reason
    return describeDenial(typeof reason === 'string' ? reason : undefined)
  }
  if (state === 'approval-requested' || state === 'approval-responded') return NOT_DECIDED
  if (state === 'input-available') return 'nothing yet'
  if (typeof errorText === 'string') return errorText
  return typeof output === 'string' ? output : JSON.stringify(output)
}

const cut = (text: string): string => (text.length > MAX_OUTPUT_CHARS ? `${text.slice(0, MAX_OUTPUT_CHARS)}…` : text)
