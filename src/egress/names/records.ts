import { codes, type DnsRecord, types } from './message.ts'

/** How long programs may keep an answer, in seconds. It is short, because the rules may change. */
export const TTL = 60

/** How many records of one answer are used; no service that wants to be reached has more. */
const MAX_RECORDS = 256
const HEADER_BYTES = 12
const MAX_NAME_BYTES = 255
const IS_ANSWER = 0x8000
const IS_TRUNCATED = 0x0200

/** What the data of a kind begins with, before its name; undefined for a kind whose data has no name that may be compressed. */
type Layout = { bytes: number; strings?: number; names: number; rest?: number } | 'opaque'

/** The kinds of records that are looked up at the server's resolver. Kinds that hold addresses are not among them. */
const layouts = new Map<number, Layout>([
  ...[types.NS, types.CNAME, types.PTR].map((type): [number, Layout] => [type, { bytes: 0, names: 1 }]),
  [types.MX, { bytes: 2, names: 1 }],
  [types.SRV, { bytes: 6, names: 1 }],
  [types.SOA, { bytes: 0, names: 2, rest: 20 }],
  [types.NAPTR, { bytes: 4, strings: 3, names: 1 }],
  ...[types.TXT, types.HINFO, types.LOC, types.DS, types.SSHFP, types.DNSKEY, types.TLSA, types.SMIMEA].map(
    (type): [number, Layout] => [type, 'opaque'],
  ),
  ...[types.OPENPGPKEY, types.SPF, types.URI, types.CAA].map((type): [number, Layout] => [type, 'opaque']),
])

/** Whether this kind is looked up at the server's resolver. */
export const isAskedFor = (type: number): boolean => layouts.has(type)

export interface ReadAnswer {
  code: number
  isTruncated: boolean
  /** The records of the requested kind, wherever aliases have led. */
  records: DnsRecord[]
}

/** Reads a resolver's answer. Undefined when it is not one to this question, or breaks off. Takes time linear in its length. */
export function readAnswer(
  message: Uint8Array,
  id: number,
  question: Uint8Array,
  type: number,
): ReadAnswer | undefined {
  const view = new DataView(message.buffer, message.byteOffset, message.byteLength)
  const start = HEADER_BYTES + question.byteLength
  if (message.byteLength < start || view.getUint16(0) !== id || view.getUint16(4) !== 1) return undefined
  const flags = view.getUint16(2)
  const asked = message.subarray(HEADER_BYTES, start)
  if (!(flags & IS_ANSWER) || !isSameQuestion(asked, question)) return undefined
  const records: DnsRecord[] = []
  const read = { code: flags & 15, isTruncated: (flags & IS_TRUNCATED) !== 0, records }
  if (read.code !== codes.success || read.isTruncated) return read
  const count = Math.min(view.getUint16(6), MAX_RECORDS)
  let offset = start
  for (let index = 0; index < count; index++) {
    const owner = skipName(message, offset)
    if (owner === undefined || owner + 10 > message.byteLength) return undefined
    const end = owner + 10 + view.getUint16(owner + 8)
    if (end > message.byteLength) return undefined
    if (view.getUint16(owner) === type) {
      const data = readData(message, owner + 10, end, layouts.get(type))
      if (!data) return undefined
      records.push({ type, ttl: Math.min(view.getUint32(owner + 4), TTL), data })
    }
    offset = end
  }
  return read
}

/** Compares names without regard to letter case. */
function isSameQuestion(one: Uint8Array, other: Uint8Array): boolean {
  const text = (bytes: Uint8Array) => Buffer.from(bytes).toString('latin1').toLowerCase()
  return text(one) === text(other)
}

/** The data without compression: in another message, pointers would lead elsewhere. */
function readData(message: Uint8Array, start: number, end: number, layout: Layout | undefined): Uint8Array | undefined {
  if (!layout || layout === 'opaque') return message.slice(start, end)
  let offset = start + layout.bytes
  for (let index = 0; index < (layout.strings ?? 0); index++) offset += 1 + (message[offset] ?? 0)
  if (offset > end) return undefined
  const parts = [message.subarray(start, offset)]
  for (let index = 0; index < layout.names; index++) {
    const name = readName(message, offset)
    const next = skipName(message, offset)
    if (!name || next === undefined || next > end) return undefined
    parts.push(name)
    offset = next
  }
  const { rest = 0 } = layout
  if (offset + rest !== end) return undefined
  return Buffer.concat([...parts, message.subarray(offset, end)])
}

/** The offset after a name. */
function skipName(message: Uint8Array, start: number): number | undefined {
  for (let offset = start; offset < message.byteLength && offset - start <= MAX_NAME_BYTES; ) {
    const length = message[offset] ?? 0
    if (length === 0) return offset + 1
    if (length >= 0xc0) return offset + 2
    if (length > 63) return undefined
    offset += 1 + length
  }
  return undefined
}

/** Reads a name and follows its pointers. Each pointer leads back, so this ends. */
function readName(message: Uint8Array, start: number): Uint8Array | undefined {
  const name = Buffer.alloc(MAX_NAME_BYTES)
  let written = 0
  let limit = start
  for (let offset = start; offset < message.byteLength; ) {
    const length = message[offset] ?? 0
    if (length >= 0xc0) {
      const target = ((length & 0x3f) << 8) | (message[offset + 1] ?? 0)
      if (target >= limit) return undefined
      offset = limit = target
      continue
    }
    const end = offset + 1 + length
    if (length > 63 || end > message.byteLength || written + 1 + length > MAX_NAME_BYTES) return undefined
    name.set(message.subarray(offset, end), written)
    written += 1 + length
    if (length === 0) return name.subarray(0, written)
    offset = end
  }
  return undefined
}

/** Encodes a host's name as DNS does. */
export function encodeName(name: string): Uint8Array {
  const labels = name.split('.').filter(Boolean)
  return Buffer.concat([
    ...labels.flatMap(label => [Uint8Array.of(label.length), Buffer.from(label, 'latin1')]),
    Uint8Array.of(0),
  ])
}
