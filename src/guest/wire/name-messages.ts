/** A DNS message on its way between a program and the server. */
export interface NameMessage {
  /** The guest's own number, by which it finds the program again. */
  id: number
  isTcp: boolean
  bytes: Uint8Array
}

/** The guest sends questions up to this size. A longer message is not a question. */
export const MAX_QUESTION_BYTES = 4096
export const MAX_ANSWER_BYTES = 65_535
/** At most this many questions of all programs may be at the server at once. */
export const MAX_QUESTIONS = 256

/** A frame has u32 length of the message, u32 id, u8 1 for TCP, and the message. Numbers are big-endian. */
const HEADER_BYTES = 9

export function encodeNameMessage({ id, isTcp, bytes }: NameMessage): Uint8Array {
  const encoded = Buffer.allocUnsafe(HEADER_BYTES + bytes.byteLength)
  encoded.writeUInt32BE(bytes.byteLength, 0)
  encoded.writeUInt32BE(id, 4)
  encoded.writeUInt8(isTcp ? 1 : 0, 8)
  encoded.set(bytes, HEADER_BYTES)
  return encoded
}

/** Cuts a byte stream into messages. The decoder throws for a message that is too long, and keeps at most one. */
export function createNameDecoder(maxBytes: number): (bytes: Buffer) => NameMessage[] {
  let held = Buffer.alloc(0)
  return bytes => {
    let buffer = held.byteLength === 0 ? bytes : Buffer.concat([held, bytes])
    const messages: NameMessage[] = []
    while (buffer.byteLength >= HEADER_BYTES) {
      const length = buffer.readUInt32BE(0)
      if (length > maxBytes) throw new Error(`a DNS message of ${length} bytes`)
      const end = HEADER_BYTES + length
      if (buffer.byteLength < end) break
      const [id, isTcp] = [buffer.readUInt32BE(4), buffer.readUInt8(8) === 1]
      messages.push({ id, isTcp, bytes: buffer.subarray(HEADER_BYTES, end) })
      buffer = buffer.subarray(end)
    }
    held = Buffer.from(buffer)
    return messages
  }
}
