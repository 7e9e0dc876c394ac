import { constants } from 'node:os'

/** A netlink socket of a network namespace. The kernel has carried out what was sent when `send` returns. */
export interface NetlinkSocket {
  /** Sends to the kernel. Throws where it takes nothing. */
  send(bytes: Uint8Array): void
  /** Returns one datagram of the kernel's answers; undefined when nothing more waits. */
  receive(): Uint8Array | undefined
}

export interface NetlinkMessage {
  type: number
  flags: number
  body: Uint8Array
  /** Says what this message is needed for, as text for a refusal. */
  what: string
}

/** The messages that the kernel refused, with the name of the errno. */
export interface NetlinkRefusal {
  what: string
  code: string
}

export const NLM_F_REQUEST = 1
export const NLM_F_ACK = 4
export const NLM_F_REPLACE = 0x100
export const NLM_F_EXCL = 0x200
export const NLM_F_CREATE = 0x400
export const NLM_F_APPEND = 0x800
const NLA_F_NESTED = 0x8000
const NLMSG_ERROR = 2
const HEADER_BYTES = 16

/** Whole numbers in the network's byte order and in this machine's, which is little-endian on all machines that this runs on. */
export const u8 = (value: number): Uint8Array => Uint8Array.of(value)
export const be16 = (value: number): Uint8Array => Uint8Array.of(value >> 8, value)
export const be32 = (value: number): Uint8Array => Uint8Array.of(value >> 24, value >> 16, value >> 8, value)
export const be64 = (value: number): Uint8Array => Buffer.concat([be32(Math.floor(value / 2 ** 32)), be32(value)])
export const le32 = (value: number): Uint8Array => Uint8Array.of(value, value >> 8, value >> 16, value >> 24)
export const text = (value: string): Uint8Array => Buffer.from(`${value}\0`)

export function attribute(type: number, value: Uint8Array): Uint8Array {
  const length = 4 + value.byteLength
  const bytes = Buffer.alloc(padded(length))
  bytes.writeUInt16LE(length, 0)
  bytes.writeUInt16LE(type, 2)
  bytes.set(value, 4)
  return bytes
}

export const nested = (type: number, ...inner: readonly Uint8Array[]): Uint8Array =>
  attribute(type | NLA_F_NESTED, Buffer.concat(inner))

const padded = (length: number) => (length + 3) & ~3

/** Sends messages in one piece and gives those that the kernel refused. */
export function exchange(socket: NetlinkSocket, messages: readonly NetlinkMessage[]): NetlinkRefusal[] {
  socket.send(Buffer.concat(messages.map(encode)))
  const refusals: NetlinkRefusal[] = []
  for (let answer = socket.receive(); answer; answer = socket.receive()) {
    for (const { sequence, errno } of readErrors(answer)) {
      const message = messages[sequence]
      if (errno !== 0 && message) refusals.push({ what: message.what, code: nameOf(errno) })
    }
  }
  return refusals
}

function encode({ type, flags, body }: NetlinkMessage, sequence: number): Uint8Array {
  const bytes = Buffer.alloc(HEADER_BYTES + padded(body.byteLength))
  bytes.writeUInt32LE(HEADER_BYTES + body.byteLength, 0)
  bytes.writeUInt16LE(type, 4)
  bytes.writeUInt16LE(flags | NLM_F_REQUEST, 6)
  bytes.writeUInt32LE(sequence, 8)
  bytes.set(body, HEADER_BYTES)
  return bytes
}

/** Lists the error messages in one datagram. An errno of 0 means success. */
export function* readErrors(datagram: Uint8Array): Generator<{ sequence: number; errno: number }> {
  const view = Buffer.from(datagram.buffer, datagram.byteOffset, datagram.byteLength)
  for (let at = 0; at + HEADER_BYTES <= view.byteLength; ) {
    const length = view.readUInt32LE(at)
    if (length < HEADER_BYTES || at + length > view.byteLength) return
    if (view.readUInt16LE(at + 4) === NLMSG_ERROR && length >= HEADER_BYTES + 4)
      yield { sequence: view.readUInt32LE(at + 8), errno: -view.readInt32LE(at + HEADER_BYTES) }
    at += padded(length)
  }
}

const nameOf = (errno: number): string =>
  Object.entries(constants.errno).find(([, number]) => number === errno)?.[0] ?? `errno ${errno}`
