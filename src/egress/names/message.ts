/** Numbers of DNS that are used here (RFC 1035, 6891, 8914, 9460). */
export const types = {
  A: 1,
  NS: 2,
  CNAME: 5,
  SOA: 6,
  PTR: 12,
  HINFO: 13,
  MX: 15,
  TXT: 16,
  AAAA: 28,
  LOC: 29,
  SRV: 33,
  NAPTR: 35,
  OPT: 41,
  DS: 43,
  SSHFP: 44,
  DNSKEY: 48,
  TLSA: 52,
  SMIMEA: 53,
  OPENPGPKEY: 61,
  SPF: 99,
  IXFR: 251,
  AXFR: 252,
  ANY: 255,
  URI: 256,
  CAA: 257,
} as const

export const codes = {
  success: 0,
  malformed: 1,
  failed: 2,
  noSuchName: 3,
  notImplemented: 4,
  refused: 5,
  badVersion: 16,
} as const

export const CLASS_INTERNET = 1

/** RFC 8914: why there is no better answer. */
export const BLOCKED = 15

const HEADER_BYTES = 12
const MAX_NAME_BYTES = 255
/** No question with what belongs to it is as long. */
export const MAX_QUERY_BYTES = 1232
/** What a program takes over UDP that does not say so. */
const PLAIN_UDP_BYTES = 512
/** Answers over UDP never leave the sandbox's loopback, so there is no path to be too narrow. */
const MAX_UDP_BYTES = 4096
const MAX_TCP_BYTES = 65_535
const MAX_ADDITIONAL = 4
const QUERY_FLAGS = { response: 0x8000, opcode: 0x7800, truncated: 0x0200, recursion: 0x0100, noChecking: 0x0010 }
const RECURSION_AVAILABLE = 0x0080

/** One question of a program. */
export interface Query {
  /** The question's bytes as they came: case is kept in the answer. */
  question: Uint8Array
  header: { id: number; flags: number }
  /** The name as text in the case that it came in, without the last dot; undefined when some label is no text. */
  name: string | undefined
  type: number
  class: number
  /** Absent for a program that knows no EDNS. */
  edns?: { udpBytes: number; version: number }
}

/** One record of an answer, for the name of the question. */
export interface DnsRecord {
  type: number
  ttl: number
  data: Uint8Array
}

export interface Answer {
  code: number
  records?: readonly DnsRecord[]
  /** Shown by tools that know RFC 8914. */
  reason?: string
}

/** Reads a message. Gives the answer for one that is no question that can be read, and undefined for what gets no answer. */
export function parseQuery(message: Uint8Array): Query | Uint8Array | undefined {
  if (message.byteLength < HEADER_BYTES) return undefined
  const view = new DataView(message.buffer, message.byteOffset, message.byteLength)
  const header = { id: view.getUint16(0), flags: view.getUint16(2) }
  // An answer to an answer could go round without end.
  if (header.flags & QUERY_FLAGS.response) return undefined
  const refuse = (code: number) => encodeHeader(header, code, [0, 0, 0])
  if (header.flags & QUERY_FLAGS.opcode) return refuse(codes.notImplemented)
  const [questions, answers, authorities, additional] = [4, 6, 8, 10].map(offset => view.getUint16(offset)) as number[]
  const isOdd = questions !== 1 || answers !== 0 || authorities !== 0 || (additional ?? 0) > MAX_ADDITIONAL
  if (isOdd || message.byteLength > MAX_QUERY_BYTES) return refuse(codes.malformed)
  const named = readName(message, HEADER_BYTES)
  if (!named || named.end + 4 > message.byteLength) return refuse(codes.malformed)
  const edns = readEdns(view, message, named.end + 4, additional ?? 0)
  if (edns === 'malformed') return refuse(codes.malformed)
  return {
    question: message.slice(HEADER_BYTES, named.end + 4),
    header,
    name: named.name,
    type: view.getUint16(named.end),
    class: view.getUint16(named.end + 2),
    ...(edns && { edns }),
  }
}

/** The bytes of an answer. Over UDP one that is too long has no records, and says that TCP has them. */
export function encodeAnswer(
  query: Query,
  { code, records = [], reason }: Answer,
  transport: 'udp' | 'tcp',
): Uint8Array {
  const { header, question, edns } = query
  const option = edns ? encodeEdns(code, reason) : new Uint8Array()
  const room =
    transport === 'tcp' ? MAX_TCP_BYTES : Math.min(Math.max(edns?.udpBytes ?? 0, PLAIN_UDP_BYTES), MAX_UDP_BYTES)
  const bodies = records.map(encodeRecord)
  const length = [question, option, ...bodies].reduce((sum, { byteLength }) => sum + byteLength, HEADER_BYTES)
  const isTruncated = length > room
  const kept = isTruncated ? [] : bodies
  const head = encodeHeader(header, code & 15, [1, kept.length, edns ? 1 : 0], isTruncated)
  return Buffer.concat([head, question, ...kept, option])
}

function encodeHeader(
  { id, flags }: Query['header'],
  code: number,
  [questions, answers, additional]: readonly [number, number, number],
  isTruncated = false,
): Uint8Array {
  const bytes = Buffer.alloc(HEADER_BYTES)
  const kept = flags & (QUERY_FLAGS.opcode | QUERY_FLAGS.recursion | QUERY_FLAGS.noChecking)
  const truncated = isTruncated ? QUERY_FLAGS.truncated : 0
  bytes.writeUInt16BE(id, 0)
  bytes.writeUInt16BE(QUERY_FLAGS.response | kept | truncated | RECURSION_AVAILABLE | code, 2)
  bytes.writeUInt16BE(questions, 4)
  bytes.writeUInt16BE(answers, 6)
  bytes.writeUInt16BE(additional, 10)
  return bytes
}

function encodeRecord({ type, ttl, data }: DnsRecord): Uint8Array {
  const bytes = Buffer.alloc(12 + data.byteLength)
  // A pointer to the question's name.
  bytes.writeUInt16BE(0xc000 | HEADER_BYTES, 0)
  bytes.writeUInt16BE(type, 2)
  bytes.writeUInt16BE(CLASS_INTERNET, 4)
  bytes.writeUInt32BE(ttl, 6)
  bytes.writeUInt16BE(data.byteLength, 10)
  bytes.set(data, 12)
  return bytes
}

const MAX_REASON_BYTES = 200
const EXTENDED_ERROR = 15

function encodeEdns(code: number, reason: string | undefined): Uint8Array {
  const text = reason === undefined ? undefined : Buffer.from(reason).subarray(0, MAX_REASON_BYTES)
  const bytes = Buffer.alloc(11 + (text ? 6 + text.byteLength : 0))
  bytes.writeUInt16BE(types.OPT, 1)
  bytes.writeUInt16BE(MAX_QUERY_BYTES, 3)
  bytes.writeUInt8(code >> 4, 5)
  if (!text) return bytes
  bytes.writeUInt16BE(6 + text.byteLength, 9)
  bytes.writeUInt16BE(EXTENDED_ERROR, 11)
  bytes.writeUInt16BE(2 + text.byteLength, 13)
  bytes.writeUInt16BE(BLOCKED, 15)
  bytes.set(text, 17)
  return bytes
}

/** A name that is not compressed: the first of a message has nothing to point to. */
function readName(message: Uint8Array, start: number): { name: string | undefined; end: number } | undefined {
  const labels: string[] = []
  let isText = true
  for (let offset = start; offset < message.byteLength && offset - start < MAX_NAME_BYTES; ) {
    const length = message[offset] ?? 0
    offset += 1
    if (length === 0) return { name: isText ? labels.join('.') : undefined, end: offset }
    if (length > 63 || offset + length > message.byteLength) return undefined
    const label = Buffer.from(message.buffer, message.byteOffset + offset, length).toString('latin1')
    // A dot within a label would be another name as text.
    isText &&= /^[!-\-/-~]+$/.test(label)
    labels.push(label)
    offset += length
  }
  return undefined
}

/** What follows the question: records of any kind, one of which may be EDNS'. */
function readEdns(view: DataView, message: Uint8Array, start: number, count: number): Query['edns'] | 'malformed' {
  let edns: Query['edns']
  let offset = start
  for (let index = 0; index < count; index++) {
    const named = readName(message, offset)
    if (!named || named.end + 10 > message.byteLength) return 'malformed'
    const dataBytes = view.getUint16(named.end + 8)
    if (view.getUint16(named.end) === types.OPT) {
      if (edns || named.name !== '') return 'malformed'
      edns = { udpBytes: view.getUint16(named.end + 2), version: view.getUint8(named.end + 5) }
    }
    offset = named.end + 10 + dataBytes
    if (offset > message.byteLength) return 'malformed'
  }
  return edns
}
