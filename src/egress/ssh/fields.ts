/** Reads the fields of SSH's messages (RFC 4251, section 5). Each call throws a RangeError where the message ends too early. */
export interface Fields {
  byte(): number
  boolean(): boolean
  number(): number
  string(): Buffer
  text(): string
  /** Throws when something is left. */
  end(): void
}

export function readFields(message: Buffer): Fields {
  let at = 0
  const take = (length: number) => {
    if (length > message.length - at) throw new RangeError('the message ends too early')
    at += length
    return message.subarray(at - length, at)
  }
  const number = () => take(4).readUInt32BE(0)
  const string = () => take(number())
  return {
    byte: () => take(1).readUInt8(0),
    boolean: () => take(1).readUInt8(0) !== 0,
    number,
    string,
    text: () => string().toString('latin1'),
    end() {
      if (at !== message.length) throw new RangeError('the message has more than it should')
    },
  }
}

export const byteField = (value: number): Buffer => Buffer.of(value)

export function numberField(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

export function stringField(value: Buffer | string): Buffer {
  const bytes = Buffer.from(value)
  return Buffer.concat([numberField(bytes.length), bytes])
}

/** A number that is not negative, of any length: without zeros in front, and with one where the first bit is set. */
export function bigNumberField(value: Buffer): Buffer {
  let start = 0
  while (value[start] === 0) start++
  const bytes = value.subarray(start)
  return stringField((bytes[0] ?? 0) & 0x80 ? Buffer.concat([Buffer.of(0), bytes]) : bytes)
}
