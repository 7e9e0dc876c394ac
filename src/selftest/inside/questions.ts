import { sendDatagram } from './sockets.ts'

const [HEAD_BYTES, QUESTION_TAIL_BYTES, RECORD_HEAD_BYTES] = [12, 6, 12]
const COUNT_AT = 6
const A = 1

/** A, AAAA, CNAME, PTR, MX, TXT, SRV, HTTPS. */
const kinds = [A, 28, 5, 12, 15, 16, 33, 65] as const

/** Asks the sandbox's resolver for the IPv4 addresses of a name. */
export function lookUp(name: string): string | undefined {
  const answer = ask(name, A)
  // The record's name is a pointer of two bytes to the name in the question.
  const at = HEAD_BYTES + Buffer.byteLength(name) + QUESTION_TAIL_BYTES + RECORD_HEAD_BYTES
  return answer.byteLength < at + 4 ? undefined : [...answer.subarray(at, at + 4)].join('.')
}

/** Lists the types of records that the sandbox's resolver gives for a name. */
export const recordsOf = (name: string): number[] => kinds.filter(kind => ask(name, kind).byteLength > 0)

/** Returns the resolver's answer; an empty one when there is no record. */
function ask(name: string, kind: number): Buffer {
  const labels = name
    .split('.')
    .map(label => Buffer.concat([Buffer.from([Buffer.byteLength(label)]), Buffer.from(label)]))
  const question = Buffer.concat([...labels, Buffer.from([0, 0, kind, 0, 1])])
  const head = Buffer.from([0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0])
  const { text } = sendDatagram('127.0.0.1', 53, Buffer.concat([head, question]), 'an answer')
  const answer = Buffer.from(text, 'latin1')
  return answer.byteLength >= HEAD_BYTES && answer.readUInt16BE(COUNT_AT) > 0 ? answer : Buffer.alloc(0)
}
