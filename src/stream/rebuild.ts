import type { MessagePart } from '../plugin-api/index.ts'
import { type Chunk, parseChunk } from './chunk.ts'
import { createMessage, type MessageBuilder } from './message.ts'
import { createWriter, type Writer } from './writer.ts'

/**
 * Rebuilds the writer and the message of an interrupted stream from its stored chunks. Skips unreadable chunks. `before`: the
 * stored parts of the reply that the run went on with.
 */
export function rebuild(
  log: Iterable<string>,
  before: readonly MessagePart[] = [],
): { writer: Writer; message: MessageBuilder } {
  const writer = createWriter({ before })
  const message = createMessage(before)
  for (const json of log) {
    const chunk = readable(json)
    if (!chunk) continue
    writer.replay(chunk)
    message.apply(chunk)
  }
  return { writer, message }
}

function readable(json: string): Chunk | undefined {
  try {
    return parseChunk(json)
  } catch {
    return undefined
  }
}
