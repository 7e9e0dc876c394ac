/** A program's side of DNS, by bytes of its own: what is tested must not read what it wrote. */

export const kinds = {
  A: 1,
  NS: 2,
  CNAME: 5,
  SOA: 6,
  PTR: 12,
  MX: 15,
  TXT: 16,
  AAAA: 28,
  SRV: 33,
  SSHFP: 44,
  SVCB: 64,
  HTTPS: 65,
  ANY: 255,
  CAA: 257,
}

export const kindOf = (type: number) => Object.entries(kinds).find(([, number]) => number === type)?.[0]

interface Question {
  id?: number
  type?: number
  class?: number
  flags?: number
  /** The size of the EDNS record; absent without it. */
  edns?: number
  ednsVersion?: number
}

export const nameBytes = (name: string): Buffer =>
  Buffer.concat([
    ...name
      .split('.')
      .filter(Boolean)
      .flatMap(label => [Buffer.of(label.length), Buffer.from(label, 'latin1')]),
    Buffer.of(0),
  ])

export function ask(name: string | Buffer, question: Question = {}): Buffer {
  const { id = 4660, type = kinds.A, class: of = 1, flags = 0x0100, edns, ednsVersion = 0 } = question
  const head = Buffer.alloc(12)
  for (const [index, value] of [id, flags, 1, 0, 0, edns === undefined ? 0 : 1].entries())
    head.writeUInt16BE(value, index * 2)
  const tail = Buffer.alloc(4)
  tail.writeUInt16BE(type, 0)
  tail.writeUInt16BE(of, 2)
  const option = edns === undefined ? [] : [Buffer.of(0, 0, 41, edns >> 8, edns & 255, 0, ednsVersion, 0, 0, 0, 0)]
  return Buffer.concat([head, typeof name === 'string' ? nameBytes(name) : name, tail, ...option])
}

const codeNames = ['NOERROR', 'FORMERR', 'SERVFAIL', 'NXDOMAIN', 'NOTIMP', 'REFUSED']

export interface Told {
  id: number
  code: string
  isTruncated: boolean
  /** The question's name as it came back, in its case. */
  name: string
  /** Addresses as text, other data as hexadecimal digits; of OPT the text of its error. */
  records: { type: number; data: string; ttl: number }[]
  error?: string
}

/** Reads an answer. Throws when it is not one that DNS allows. */
export function told(answer: Uint8Array | undefined): Told {
  if (!answer) throw new Error('no answer')
  const bytes = Buffer.from(answer)
  const [id, flags, questions, answers, authorities, additional] = [0, 2, 4, 6, 8, 10].map(at =>
    bytes.readUInt16BE(at),
  ) as [number, number, number, number, number, number]
  if (!(flags & 0x8000) || authorities !== 0) throw new Error('not an answer')
  let at = 12
  const nameAt = (start: number): [string, number] => {
    const labels: string[] = []
    let offset = start
    for (;;) {
      const length = bytes.readUInt8(offset)
      if (length === 0) return [labels.join('.'), offset + 1]
      if (length >= 192) {
        const pointer = bytes.readUInt16BE(offset) & 0x3fff
        if (pointer >= start) throw new Error('a pointer that leads forward')
        return [[...labels, nameAt(pointer)[0]].join('.'), offset + 2]
      }
      labels.push(bytes.toString('latin1', offset + 1, offset + 1 + length))
      offset += 1 + length
    }
  }
  let name = ''
  if (questions === 1) {
    ;[name, at] = nameAt(12)
    at += 4
  }
  let high = 0
  let error: string | undefined
  const records: Told['records'] = []
  for (let index = 0; index < answers + additional; index++) {
    const [owner, end] = nameAt(at)
    const type = bytes.readUInt16BE(end)
    const ttl = bytes.readUInt32BE(end + 4)
    const length = bytes.readUInt16BE(end + 8)
    const data = bytes.subarray(end + 10, end + 10 + length)
    if (data.byteLength !== length) throw new Error('a record that is cut')
    at = end + 10 + length
    if (type === 41) {
      high = ttl >>> 24
      if (length > 0) error = data.toString('utf8', 6)
      continue
    }
    if (owner !== name) throw new Error(`a record of ${owner}`)
    const hex = data.toString('hex')
    const groups = hex.match(/.{4}/g)?.join(':') ?? ''
    records.push({ type, ttl, data: type === 1 ? [...data].join('.') : type === 28 ? groups : hex })
  }
  if (at !== bytes.byteLength) throw new Error('bytes after the answer')
  const code = (flags & 15) | (high << 4)
  return {
    id,
    code: codeNames[code] ?? String(code),
    isTruncated: (flags & 0x0200) !== 0,
    name,
    records,
    ...(error !== undefined && { error }),
  }
}
