import type { MessagePart, StoredMessage, Turn } from '../../src/plugin-api/index.ts'
import { objectOf } from '../../src/read/json.ts'

/** What a program is asked. */
export type PromptPart = { type: 'text'; text: string } | { type: 'image'; mediaType: string; data: string }

/** Of a conversation that the program was no part of, the end of this length is told. */
const MAX_TRANSCRIPT_CHARS = 200_000
const MAX_OUTPUT_CHARS = 2000

/** What of the conversation before a program is told. */
export type Retold = 'nothing' | 'last turn' | 'all'

/** The turn's own messages, after what is told again. */
export function promptOf({ prompt, history }: Turn, retold: Retold): PromptPart[] {
  const parts = prompt.flatMap(message => message.parts.flatMap(toPrompt))
  const from = retold === 'all' ? 0 : retold === 'nothing' ? history.length : lastTurnOf(history)
  const transcript = transcriptOf(history.slice(from))
  return transcript ? [{ type: 'text', text: transcript }, ...parts] : parts
}

const lastTurnOf = (history: readonly StoredMessage[]): number =>
  Math.max(
    history.findLastIndex(({ role }) => role === 'user'),
    0,
  )

function toPrompt(part: MessagePart): PromptPart[] {
  if (part.type === 'text' && typeof part.text === 'string') return [{ type: 'text', text: part.text }]
  // An image that lies in the message itself. No other is fetched: its address may be one that the user must not reach.
  const url = part.type === 'file' ? part.url : part.type === 'data-image' ? objectOf(part.data)?.url : undefined
  if (typeof url !== 'string') return []
  const [, mediaType, data] = /^data:(image\/[a-z.+-]+);base64,([A-Za-z0-9+/=]+)$/.exec(url) ?? []
  return mediaType && data ? [{ type: 'image', mediaType, data }] : []
}

/** A conversation as text: programs take no history of others. */
function transcriptOf(history: readonly StoredMessage[]): string {
  const said = history.map(({ role, parts }) => `${names[role]}: ${parts.flatMap(toText).join('\n')}`).join('\n\n')
  if (!said) return ''
  const kept = said.length > MAX_TRANSCRIPT_CHARS ? `…${said.slice(-MAX_TRANSCRIPT_CHARS)}` : said
  return `<conversation>\nWhat was said in this conversation before:\n\n${kept}\n</conversation>`
}

const names = { user: 'User', assistant: 'You', system: 'System' } as const

function toText({ type, text, input, output, errorText }: MessagePart): string[] {
  if (type === 'text' && typeof text === 'string') return [text]
  if (!type.startsWith('tool-')) return []
  const result =
    typeof errorText === 'string' ? errorText : typeof output === 'string' ? output : JSON.stringify(output)
  const call = `${type.slice('tool-'.length)} ${JSON.stringify(input) ?? ''}`
  return [`[${cut(call)} gave: ${cut(result ?? '')}]`]
}

const cut = (text: string): string => (text.length > MAX_OUTPUT_CHARS ? `${text.slice(0, MAX_OUTPUT_CHARS)}…` : text)
