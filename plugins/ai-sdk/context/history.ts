import type { AssistantModelMessage, ModelMessage, ToolResultPart, UserModelMessage } from 'ai'
import type { MessagePart, ModelAccess, StoredMessage } from '../../../src/plugin-api/index.ts'
import { objectOf } from '../../../src/read/json.ts'
import { cleanCallId } from '../model/call-ids.ts'
import { toModelError, toModelOutput } from '../tools/output.ts'
import type { ContextEntry } from './context-entries.ts'
import { readSummary, summaryMessage } from './summary.ts'

/**
 * Converts a thread to the model's context. A summary replaces the messages that it covers. Reasoning is left out: no provider
 * accepts another's or needs its old one.
 */
export function toEntries(messages: readonly StoredMessage[], wire: ModelAccess['wire']): ContextEntry[] {
  let entries: ContextEntry[] = []
  const ends = new Set(messages.flatMap(({ parts }) => parts.flatMap(part => readSummary(part)?.through ?? [])))
  for (const message of messages) {
    if (message.role !== 'assistant') {
      entries.push(...fromUser(message, wire))
      continue
    }
    for (const part of splitAnswers(message.parts.filter(isSaid), ends)) {
      const summary = part.length === 1 && part[0] ? readSummary(part[0]) : undefined
      if (!summary) {
        entries.push(...fromAssistant(part, message.id, wire))
        continue
      }
      const end = entries.findLastIndex(({ key }) => key === summary.through)
      // When the thread no longer has the summary's end, all entries follow the summary.
      entries = [{ message: summaryMessage(summary.text), key: summary.through }, ...entries.slice(end + 1)]
    }
  }
  return entries
}

function fromUser({ id, role, parts }: StoredMessage, wire: ModelAccess['wire']): ContextEntry[] {
  const content: Exclude<UserModelMessage['content'], string> = []
  for (const part of parts) {
    if (part.type === 'text' && typeof part.text === 'string' && part.text !== '') {
      // A client's system message must not pass as the server's.
      content.push({ type: 'text', text: role === 'system' ? `<system>${part.text}</system>` : part.text })
    }
    const image = readImage(part)
    if (image) content.push({ type: 'file', ...image })
    const data = wire === 'openai-chat' ? undefined : readPdf(part)
    if (data !== undefined) content.push({ type: 'file', mediaType: 'application/pdf', data })
  }
  return content.length === 0 ? [] : [{ message: { role: 'user', content }, key: id }]
}

/** The limit of providers for one request. */
const MAX_PDF_CHARS = 12 * 1024 * 1024

/** The data of a PDF inside the message. OpenAI-compatible servers refuse PDFs. */
function readPdf({ type, url }: MessagePart): string | undefined {
  const prefix = 'data:application/pdf;base64,'
  if (type !== 'file' || typeof url !== 'string' || !url.startsWith(prefix) || url.length > MAX_PDF_CHARS)
    return undefined
  return url.slice(prefix.length)
}

/** An image inside the message. No other is fetched: a fetch could reach an address that the user must not reach. */
function readImage({ type, url, data }: MessagePart): { mediaType: string; data: string } | undefined {
  const address = type === 'file' ? url : type === 'data-image' ? objectOf(data)?.url : undefined
  if (typeof address !== 'string' || !address.startsWith('data:image/')) return undefined
  const [, mediaType, base64] = /^data:(image\/[a-z.+-]+);base64,([A-Za-z0-9+/=]+)$/.exec(address) ?? []
  return mediaType && base64 ? { mediaType, data: base64 } : undefined
}

/**
 * Splits a reply into the model's answers, each with its calls. A thread does not store the borders: text after a call begins
 * an answer, and a call at which a summary ends (`ends`) ends one.
 */
function splitAnswers(parts: readonly MessagePart[], ends: ReadonlySet<string>): MessagePart[][] {
  const groups: MessagePart[][] = []
  let open: MessagePart[] | undefined
  for (const part of parts) {
    const isAlone = readSummary(part) !== undefined
    const last = open?.at(-1)
    const beginsAnswer =
      ((part.type === 'text' || part.type === 'reasoning') && open?.some(isTool)) ||
      (last && isTool(last) && ends.has(cleanCallId(String(last.toolCallId))))
    if (open && !isAlone && !beginsAnswer) {
      open.push(part)
      continue
    }
    const group = [part]
    groups.push(group)
    open = isAlone ? undefined : group
  }
  return groups
}

/** Other parts, such as files and borders of steps, are for people. */
const isSaid = (part: MessagePart): boolean => part.type === 'text' || part.type === 'reasoning' || isTool(part)

/** The server asks by such a call whether it may spend more. The model never made it. */
const BUDGET_TOOL = 'Budget'

const isTool = ({ type, toolCallId }: MessagePart): boolean =>
  type.startsWith('tool-') && typeof toolCallId === 'string'

function fromAssistant(parts: readonly MessagePart[], messageId: string, wire: ModelAccess['wire']): ContextEntry[] {
  const content: Exclude<AssistantModelMessage['content'], string> = []
  const results: ToolResultPart[] = []
  for (const part of parts) {
    if (part.type === 'text' && typeof part.text === 'string' && part.text !== '') {
      content.push({ type: 'text', text: part.text })
    }
    const output = isTool(part) ? readOutcome(part) : undefined
    if (!output) continue
    const call = { toolCallId: cleanCallId(String(part.toolCallId)), toolName: part.type.slice('tool-'.length) }
    const input = objectOf(part.input) ?? {}
    content.push({ type: 'tool-call', ...call, input })
    results.push({ type: 'tool-result', ...call, output })
  }
  if (content.length === 0) return []
  const key = results.at(-1)?.toolCallId ?? messageId
  const answer: ContextEntry = { message: { role: 'assistant', content }, key }
  return results.length === 0 ? [answer] : [answer, ...toolEntries(results, key, wire)]
}

/** What a call came to, for the model: every call that it made needs a result. Undefined for a part that is no call of its own. */
function readOutcome({ type, state, output, errorText, approval }: MessagePart): ToolResultPart['output'] | undefined {
  if (type === `tool-${BUDGET_TOOL}`) return undefined
  const { approved, reason } = objectOf(approval) ?? {}
  switch (state) {
    case 'output-available':
      return toModelOutput(output ?? null)
    case 'output-error':
      return toModelError(String(errorText))
    case 'output-denied':
      return toModelError(`The user denied this call.${typeof reason === 'string' ? ` Reason: ${reason}` : ''}`)
    case 'approval-requested':
      return toModelError("This call waits for the user's approval and has not run.")
    case 'approval-responded':
      return toModelError(approved === true ? 'This call was approved later.' : 'The user denied this call.')
    default:
      return undefined
  }
}

/** The results of an answer's calls. OpenAI's chat API takes only text as a result: images follow in a user message. */
export function toolEntries(
  results: readonly ToolResultPart[],
  key: string,
  wire: ModelAccess['wire'],
): ContextEntry[] {
  if (wire !== 'openai-chat') return [{ message: { role: 'tool', content: [...results] }, key }]
  const images: Exclude<UserModelMessage['content'], string> = []
  const texts = results.map(result => {
    if (result.output.type !== 'content') return result
    const lines = result.output.value.map(part => {
      if (part.type === 'text') return part.text
      if (part.type !== 'file') return ''
      images.push({ type: 'file', data: part.data, mediaType: part.mediaType })
      return '(an image: it follows)'
    })
    return { ...result, output: { type: 'text' as const, value: lines.join('\n') } }
  })
  const messages: ModelMessage[] = [{ role: 'tool', content: texts }]
  if (images.length > 0) messages.push({ role: 'user', content: images })
  return messages.map(message => ({ message, key }))
}
