import { type Chunk, parseChunk } from './chunk.ts'
import { createMessage, type MessageBuilder } from './message.ts'
import { createWriter, type Writer } from './writer.ts'

/** Rebuilds the writer and the message of an interrupted stream from its stored chunks. Skips unreadable chunks. */
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
