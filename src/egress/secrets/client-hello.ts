/** The contents of a program's first TLS message. */
export interface ClientHello {
  /** The host that the program wants; undefined when it names none. */
  serverName?: string
  /** The protocols that the program speaks (ALPN), in its order. */
  protocols: string[]
}

const [HANDSHAKE, CLIENT_HELLO] = [22, 1]
const [SERVER_NAME, PROTOCOLS] = [0, 16]
/** The longest message that is read; no honest program's is longer. The bytes so far are parsed again with each new piece. */
const MAX_BYTES = 64 * 1024
const MAX_RECORDS = 16

/** Reads the message from a connection's first bytes; undefined when more are needed. Throws when they do not begin TLS. */
export function readClientHello(bytes: Buffer): ClientHello | undefined {
  if (bytes.byteLength > MAX_BYTES) throw new Error('not a ClientHello')
  const message = joinRecords(bytes)
  if (!message || message.byteLength < 4) return undefined
  const length = message.readUIntBE(1, 3)
  if (message[0] !== CLIENT_HELLO) throw new Error('not a ClientHello')
  if (message.byteLength < 4 + length) return undefined
  const hello = reader(message.subarray(4, 4 + length))
  hello.take(2 + 32)
  hello.take(hello.number(1))
  hello.take(hello.number(2))
  hello.take(hello.number(1))
  const extensions = reader(hello.isAtEnd() ? Buffer.alloc(0) : hello.take(hello.number(2)))
  const found: ClientHello = { protocols: [] }
  while (!extensions.isAtEnd()) {
    const type = extensions.number(2)
    const content = reader(extensions.take(extensions.number(2)))
    if (type === SERVER_NAME) {
      const names = reader(content.take(content.number(2)))
      if (names.number(1) === 0) found.serverName = names.take(names.number(2)).toString('latin1')
    } else if (type === PROTOCOLS) {
      const list = reader(content.take(content.number(2)))
      while (!list.isAtEnd()) found.protocols.push(list.take(list.number(1)).toString('latin1'))
    }
  }
  return found
}

/** The handshake's bytes in the records so far; undefined before the first record's header is complete. */
function joinRecords(bytes: Buffer): Buffer | undefined {
  const parts: Buffer[] = []
  let at = 0
  while (at < bytes.byteLength) {
    if (bytes[at] !== HANDSHAKE || (at + 1 < bytes.byteLength && bytes[at + 1] !== 3)) throw new Error('not TLS')
    if (at + 5 > bytes.byteLength) break
    const end = at + 5 + bytes.readUInt16BE(at + 3)
    if (end === at + 5 || parts.length === MAX_RECORDS) throw new Error('not TLS')
    parts.push(bytes.subarray(at + 5, end))
    at = end
  }
  return parts.length > 0 ? Buffer.concat(parts) : undefined
}

/** Reads fields one after the other. Throws where there are no more bytes. */
function reader(bytes: Buffer) {
  let at = 0
  const take = (count: number): Buffer => {
    if (at + count > bytes.byteLength) throw new Error('cut short')
    at += count
    return bytes.subarray(at - count, at)
  }
  return { take, number: (size: number) => take(size).readUIntBE(0, size), isAtEnd: () => at >= bytes.byteLength }
}
