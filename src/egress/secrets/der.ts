/** Distinguished encoding of ASN.1: the few types that a certificate is made of. */

export function tagged(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = Buffer.concat(parts)
  const { byteLength } = content
  const length =
    byteLength < 0x80
      ? [byteLength]
      : byteLength < 0x100
        ? [0x81, byteLength]
        : [0x82, byteLength >> 8, byteLength & 0xff]
  return Buffer.concat([Buffer.from([tag, ...length]), content])
}

export const sequence = (...parts: readonly Uint8Array[]): Buffer => tagged(0x30, ...parts)
export const set = (...parts: readonly Uint8Array[]): Buffer => tagged(0x31, ...parts)
export const octets = (bytes: Uint8Array): Buffer => tagged(0x04, bytes)
/** Encodes a number of at least zero, given by its bytes with the most significant first. */
export const integer = (bytes: Uint8Array): Buffer =>
  tagged(0x02, ...((bytes[0] ?? 0) >= 0x80 ? [Buffer.of(0)] : []), bytes)
export const yes = (): Buffer => tagged(0x01, Buffer.of(0xff))
export const utf8 = (text: string): Buffer => tagged(0x0c, Buffer.from(text))
/** Encodes bits. The last `unused` of them do not count. */
export const bits = (bytes: Uint8Array, unused = 0): Buffer => tagged(0x03, Buffer.of(unused), bytes)

/** Encodes an object id such as `1.2.840.10045.4.3.2`. */
export function objectId(text: string): Buffer {
  const [first = 0, second = 0, ...rest] = text.split('.').map(Number)
  const base128 = (number: number): number[] => {
    const bytes = [number & 0x7f]
    for (let left = number >>> 7; left > 0; left >>>= 7) bytes.unshift((left & 0x7f) | 0x80)
    return bytes
  }
  return tagged(0x06, Buffer.from([first * 40 + second, ...rest].flatMap(base128)))
}

/** Encodes a time in whole seconds. Years before 2050 have two digits, as certificates require. */
export function time(date: Date): Buffer {
  const digits = date.toISOString().replace(/\D/g, '').slice(0, 14)
  return date.getUTCFullYear() < 2050
    ? tagged(0x17, Buffer.from(`${digits.slice(2)}Z`))
    : tagged(0x18, Buffer.from(`${digits}Z`))
}
