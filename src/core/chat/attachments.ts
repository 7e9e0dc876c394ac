import { posix } from 'node:path'
import { messageOf } from '../../errors.ts'
import type { EngineEvent, EnvironmentFiles, MessagePart, StoredMessage } from '../../plugin-api/index.ts'

/** A text up to this length is part of the message; a longer one is a file in the sandbox. */
const MAX_INLINE_CHARS = 32_000
/** The same for all attachments of a message together. */
const MAX_INLINE_CHARS_OF_MESSAGE = 96_000

const DIRECTORY = '/home/user/attachments'

/** The types that models take as they are. */
const images: ReadonlySet<string> = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])

type Notice = Extract<EngineEvent, { type: 'notice' }>

/**
 * Messages with what is attached to them as an engine can tell it: a text as text, any other file written into the
 * sandbox, and named. Images stay, and so do PDFs, beside their names, for models that take them. Yields a notice for
 * what cannot be given.
 */
export async function* withAttachments(
  messages: readonly StoredMessage[],
  files: EnvironmentFiles,
): AsyncGenerator<Notice, StoredMessage[]> {
  const given: StoredMessage[] = []
  for (const message of messages) {
    if (message.role !== 'user' || !message.parts.some(isAttached)) {
      given.push(message)
      continue
    }
    const parts: MessagePart[] = []
    let room = MAX_INLINE_CHARS_OF_MESSAGE
    for (const [index, part] of message.parts.entries()) {
      if (!isAttached(part)) {
        parts.push(part)
        continue
      }
      const name = chooseName(part, index)
      try {
        const bytes = decodeUrl(part.url)
        const text = decodeText(bytes)
        if (text !== undefined && text.length <= Math.min(room, MAX_INLINE_CHARS)) {
          room -= text.length
          parts.push(say(`The user attached the file ${name}:\n<file name="${name}">\n${text}\n</file>`))
          continue
        }
        const path = posix.join(DIRECTORY, safe(message.id), name)
        if (!(await files.info(path))) await files.write(path, bytes)
        parts.push(say(`The user attached the file ${name} (${bytes.byteLength} bytes). It is in the sandbox: ${path}`))
        if (part.mediaType === 'application/pdf') parts.push(part)
      } catch (error) {
        const text = `The attachment ${name} could not be given to the agent: ${messageOf(error)}`
        parts.push(say(`The user attached the file ${name}, which could not be read.`))
        yield { type: 'notice', level: 'warn', code: 'attachment_left_out', text }
      }
    }
    given.push({ ...message, parts })
  }
  return given
}

/** Does the same for messages that steer a run. It yields no notices: the message itself says what could not be read. */
export async function prepareAttachments(
  messages: readonly StoredMessage[],
  files: EnvironmentFiles,
): Promise<StoredMessage[]> {
  const preparing = withAttachments(messages, files)
  for (;;) {
    const { value, done } = await preparing.next()
    if (done) return value
  }
}

const isAttached = ({ type, url, mediaType }: MessagePart): boolean =>
  type === 'file' && !(typeof url === 'string' && url.startsWith('data:image/') && images.has(String(mediaType)))

/** An address is never fetched: it may be one that the user must not reach. */
function decodeUrl(url: unknown): Buffer {
  const comma = typeof url === 'string' && url.startsWith('data:') ? url.indexOf(',') : -1
  if (typeof url !== 'string' || comma < 0)
    throw new Error('only what lies in the message itself (a data: URL) is taken.')
  const data = url.slice(comma + 1)
  if (url.slice(0, comma).endsWith(';base64')) return Buffer.from(data, 'base64')
  return Buffer.from(decodeURIComponent(data))
}

function decodeText(bytes: Buffer): string | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    return text.includes('\0') || text.startsWith('%PDF-') ? undefined : text
  } catch {
    return undefined
  }
}

const chooseName = ({ filename }: MessagePart, index: number): string =>
  safe(typeof filename === 'string' ? posix.basename(filename) : '') || `file-${index + 1}`

/** A name that is one everywhere: in a path, and between quotes. */
const safe = (name: string): string =>
  name
    .slice(0, 100)
    .replace(/[^\p{L}\p{N}._-]/gu, '_')
    .replace(/^\.+/, '')

const say = (text: string): MessagePart => ({ type: 'text', text })
