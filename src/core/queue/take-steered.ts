import type { Database } from 'bun:sqlite'
import { insertBefore } from '../../db/messages.ts'
import { deleteQueued, listQueued } from '../../db/queued-messages.ts'
import type { MessagePart } from '../../plugin-api/index.ts'
import { objectOf } from '../../read/json.ts'
import type { SteeringPart } from '../../stream/chunk.ts'

/**
 * Moves a message that the engine has taken from the queue to the thread: before the reply that heeds it. Call it in the
 * transaction that stores the run's word of it.
 */
export function takeSteered(db: Database, threadId: string, messageId: string, replyId: string): void {
  for (const { id, messages } of listQueued(db, threadId)) {
    const message = messages.find(each => each.id === messageId)
    if (!message) continue
    insertBefore(db, threadId, message, replyId)
    if (id === messageId) deleteQueued(db, threadId, id)
    return
  }
}

/** What a stream shows of a message that steers: the kinds of part that clients know there. */
export const steeringParts = (db: Database, threadId: string, messageId: string): SteeringPart[] =>
  listQueued(db, threadId)
    .flatMap(({ messages }) => messages)
    .find(({ id }) => id === messageId)
    ?.parts.flatMap(toSteeringPart) ?? []

function toSteeringPart({ type, text, url, mediaType, filename, data }: MessagePart): SteeringPart[] {
  if (type === 'text' && typeof text === 'string') return [{ type, text }]
  const image = type === 'data-image' ? objectOf(data) : undefined
  const file = image ?? (type === 'file' ? { url, mediaType } : {})
  if (typeof file.url !== 'string' || typeof file.mediaType !== 'string') return []
  const name = typeof filename === 'string' ? { filename } : {}
  return [{ type: 'file', mediaType: file.mediaType, url: file.url, ...name }]
}
