import { type Chunk, parseChunk } from './chunk.ts'
import { createMessage, type MessageBuilder } from './message.ts'
import { createWriter, type Writer } from './writer.ts'

/** The writer and the message of a stream that was cut off, from its stored chunks. An unreadable chunk is left out. */
export function rebuild(log: Iterable<string>): { writer: Writer; message: MessageBuilder } {
  const writer = createWriter()
  const message = createMessage()
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
