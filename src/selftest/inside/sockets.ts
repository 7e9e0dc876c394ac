import { isIPv6 } from 'node:net'
import { CallError, syscall } from './syscall.ts'

export const [AF_UNIX, AF_INET, AF_INET6, AF_NETLINK] = [1, 2, 10, 16]
export const [SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET] = [1, 2, 3, 5]
const SOL_SOCKET = 1
const [SO_RCVTIMEO, SO_SNDTIMEO] = [20, 21]
const MSG_NOSIGNAL = 0x4000
const MAX_ANSWER_BYTES = 8192
const WAITS_SECONDS = 4n

/** The family of an address, and the address with a port in the kernel's form. */
export function toSocketAddress(address: string, port: number): { family: number; bytes: Buffer } {
  const family = isIPv6(address) ? AF_INET6 : AF_INET
  const bytes = Buffer.alloc(family === AF_INET ? 16 : 28)
  bytes.writeUInt16LE(family, 0)
  bytes.writeUInt16BE(port, 2)
  if (family === AF_INET) bytes.set(address.split('.').map(Number), 4)
  else bytes.set(toBytes6(address), 8)
  return { family, bytes }
}

function toBytes6(text: string): number[] {
  // A URL turns every form of an IPv6 address into hexadecimal.
  const hex = new URL(`http://[${text}]/`).hostname.slice(1, -1)
  const [before = [], after = []] = hex.split('::').map(half => (half === '' ? [] : half.split(':')))
  const all = [...before, ...Array<string>(8 - before.length - after.length).fill('0'), ...after]
  return all.map(group => Number.parseInt(group, 16)).flatMap(value => [value >> 8, value & 255])
}

/** Gives a socket to `use` and closes it afterwards. A read waits for four seconds, and then fails with EAGAIN. */
export function withSocket<Result>(
  [family, type, protocol]: readonly [number, number, number],
  use: (socket: number) => Result,
): Result {
  const socket = syscall('socket', family, type, protocol)
  try {
    const time = Buffer.alloc(16)
    time.writeBigInt64LE(WAITS_SECONDS, 0)
    for (const option of [SO_RCVTIMEO, SO_SNDTIMEO]) syscall('setsockopt', socket, SOL_SOCKET, option, time, 16)
    return use(socket)
  } finally {
    syscall('close', socket)
  }
}

/** The answer as latin1, and the name of the error that ended it. */
export interface Answer {
  text: string
  code?: string
}

/** Runs `work` and returns its result, or the code of the system call that failed in it. */
export function tryCalls(work: (got: (bytes: Buffer) => void) => void): Answer {
  let text = ''
  try {
    work(bytes => (text += bytes.toString('latin1')))
    return { text }
  } catch (error) {
    if (error instanceof CallError) return { text, code: error.code }
    throw error
  }
}

/** Connects, sends the text, and reads until an empty line or until the other side ends. */
export const talk = (address: string, port: number, text: string): Answer =>
  tryCalls(got => {
    const { family, bytes } = toSocketAddress(address, port)
    withSocket([family, SOCK_STREAM, 0], socket => {
      syscall('connect', socket, bytes, bytes.byteLength)
      if (text !== '') sendTo(socket, Buffer.from(text))
      for (let heard = ''; !heard.includes('\r\n\r\n'); ) {
        const piece = receive(socket)
        if (piece.byteLength === 0) return
        heard += piece.toString('latin1')
        got(piece)
      }
    })
  })

/** Sends one datagram, and reads an answer when `wanted` says so. */
export const sendDatagram = (address: string, port: number, message: Buffer, wanted: 'an answer' | 'none'): Answer =>
  tryCalls(got => {
    const { family, bytes } = toSocketAddress(address, port)
    withSocket([family, SOCK_DGRAM, 0], socket => {
      syscall('connect', socket, bytes, bytes.byteLength)
      sendTo(socket, message)
      if (wanted === 'an answer') got(receive(socket))
    })
  })

export const sendTo = (socket: number, message: Buffer, to: Buffer | null = null): number =>
  syscall('sendto', socket, message, message.byteLength, MSG_NOSIGNAL, to, to?.byteLength ?? 0)

/** Reads the next bytes; an empty text means the end. */
export function receive(socket: number): Buffer {
  const bytes = Buffer.alloc(MAX_ANSWER_BYTES)
  return bytes.subarray(0, syscall('recvfrom', socket, bytes, bytes.byteLength, 0, null, null))
}
