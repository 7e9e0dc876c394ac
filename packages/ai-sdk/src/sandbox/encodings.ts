type Encoding = 'utf8' | 'utf16le' | 'latin1' | 'ascii'

const names: Readonly<Record<string, Encoding>> = {
  utf8: 'utf8',
  utf16le: 'utf16le',
  ucs2: 'utf16le',
  latin1: 'latin1',
  iso88591: 'latin1',
  binary: 'latin1',
  ascii: 'ascii',
  usascii: 'ascii',
}

const LAST = { latin1: 0xff, ascii: 0x7f }

/** Throws a RangeError for an unknown encoding. */
function encodingOf(name: string): Encoding {
  const encoding = names[name.toLowerCase().replace(/[-_]/g, '')]
  if (!encoding) throw new RangeError(`encoding: ${name} is none of utf-8, utf-16le, latin1 and ascii`)
  return encoding
}

/** Decodes bytes. A byte order mark is kept, so that reading and writing again changes nothing. */
export function decode(bytes: Uint8Array, name = 'utf-8'): string {
  const encoding = encodingOf(name)
  if (encoding === 'utf8') return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes)
  if (encoding === 'utf16le') return new TextDecoder('utf-16le', { ignoreBOM: true }).decode(bytes)
  const parts: string[] = []
  for (let at = 0; at < bytes.length; at += 8192) parts.push(String.fromCharCode(...bytes.subarray(at, at + 8192)))
  return parts.join('')
}

/** Encodes text. Throws a RangeError for a character that the encoding does not have. */
export function encode(text: string, name = 'utf-8'): Uint8Array<ArrayBuffer> {
  const encoding = encodingOf(name)
  if (encoding === 'utf8') return new TextEncoder().encode(text)
  if (encoding === 'utf16le') {
    const bytes = new DataView(new ArrayBuffer(text.length * 2))
    for (let at = 0; at < text.length; at++) bytes.setUint16(at * 2, text.charCodeAt(at), true)
    return new Uint8Array(bytes.buffer)
  }
  return Uint8Array.from({ length: text.length }, (_, at) => {
    const unit = text.charCodeAt(at)
    if (unit > LAST[encoding]) throw new RangeError(`encoding: ${name} has no character for U+${unit.toString(16)}`)
    return unit
  })
}
