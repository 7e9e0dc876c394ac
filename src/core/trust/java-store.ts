import { createHash } from 'node:crypto'

/**
 * Returns a store in Java's own format (JKS) with a certificate added; the one that was added before is replaced. Undefined when
 * the bytes are no such store, when it has other entries than certificates, or when its password is not the one that Java is
 * delivered with.
 */
export function withJavaCertificate(store: Buffer, certificate: Buffer, nowMs: number): Buffer | undefined {
  const content = store.subarray(0, -DIGEST_BYTES)
  if (store.byteLength < HEADER_BYTES + DIGEST_BYTES || content.readUInt32BE(0) !== MAGIC) return undefined
  if (content.readUInt32BE(4) !== VERSION || !digestOf(content).equals(store.subarray(-DIGEST_BYTES))) return undefined
  const entries = readEntries(content)
  if (!entries) return undefined
  const others = entries.filter(({ alias }) => alias !== ALIAS).map(({ bytes }) => bytes)
  const header = Buffer.alloc(HEADER_BYTES)
  for (const [index, value] of [MAGIC, VERSION, others.length + 1].entries()) header.writeUInt32BE(value, index * 4)
  const next = Buffer.concat([header, ...others, entryOf(certificate, nowMs)])
  return Buffer.concat([next, digestOf(next)])
}

const MAGIC = 0xfeedfeed
const VERSION = 2
const CERTIFICATE = 2
const HEADER_BYTES = 12
const DIGEST_BYTES = 20
const ALIAS = 'threadbox'

/** Every Java is delivered with this password: it guards against damage, not against people. */
const PASSWORD = 'changeit'

/** The digest that the format prescribes. */
const digestOf = (content: Buffer): Buffer =>
  createHash('sha1')
    .update(Buffer.from(PASSWORD, 'utf16le').swap16())
    .update('Mighty Aphrodite')
    .update(content)
    .digest()

function entryOf(certificate: Buffer, nowMs: number): Buffer {
  const fixed = Buffer.alloc(8)
  fixed.writeBigUInt64BE(BigInt(nowMs))
  return Buffer.concat([
    number(CERTIFICATE, 4),
    text(ALIAS),
    fixed,
    text('X.509'),
    number(certificate.length, 4),
    certificate,
  ])
}

/** Undefined when the store has anything but certificates. */
function readEntries(content: Buffer): { alias: string; bytes: Buffer }[] | undefined {
  const entries: { alias: string; bytes: Buffer }[] = []
  let at = HEADER_BYTES
  const skip = (bytes: number) => {
    at += bytes
    if (at > content.length) throw new RangeError('the store ends too early')
  }
  const take = (sizeBytes: 2 | 4) => {
    const length = content.readUIntBE(at, sizeBytes)
    skip(sizeBytes + length)
    return content.subarray(at - length, at)
  }
  try {
    for (let left = content.readUInt32BE(8); left > 0; left--) {
      const begin = at
      if (content.readUInt32BE(at) !== CERTIFICATE) return undefined
      skip(4)
      const alias = take(2).toString('utf8')
      skip(8)
      take(2)
      take(4)
      entries.push({ alias, bytes: content.subarray(begin, at) })
    }
  } catch {
    return undefined
  }
  return at === content.length ? entries : undefined
}

function number(value: number, sizeBytes: number): Buffer {
  const bytes = Buffer.alloc(sizeBytes)
  bytes.writeUIntBE(value, 0, sizeBytes)
  return bytes
}

const text = (value: string): Buffer => Buffer.concat([number(Buffer.byteLength(value), 2), Buffer.from(value)])
