import { randomBytes } from 'node:crypto'
import type { ByteSource } from '../../http1/byte-source.ts'

/**
 * A message of a WebSocket server, by RFC 6455; this end is the client. The frames are our own: WebSocket clients of Bun and
 * of npm dial by themselves, and here the connection leads into a sandbox.
 */
export type Message =
  | { kind: 'text'; text: string }
  | { kind: 'binary'; bytes: Buffer }
  | { kind: 'ping'; bytes: Buffer }
  /** The code is 1005 when the server gave none. */
  | { kind: 'close'; code: number; reason: string }

export const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const

/** The server broke the protocol. `code` is the one to close with. */
export class ProtocolError extends Error {
  constructor(
    readonly code: 1002 | 1007 | 1009 | 1013,
    message: string,
  ) {
    super(message)
  }
}

const MAX_CONTROL_BYTES = 125
/** Pieces that may wait to be joined: pieces of one byte take a hundred times their size in memory. */
const MAX_SMALL_PIECES = 1024
const LENGTH_OF_16_BITS = 126
const LENGTH_OF_64_BITS = 127
const MASK_BYTES = 4

/** Makes a whole message or control frame, masked as a client's must be. */
export function createFrame(opcode: number, payload: Buffer): Buffer {
  const size = payload.byteLength
  const extra = size <= MAX_CONTROL_BYTES ? 0 : size < 65_536 ? 2 : 8
  const frame = Buffer.allocUnsafe(2 + extra + MASK_BYTES + size)
  frame[0] = 0x80 | opcode
  frame[1] = 0x80 | (extra === 0 ? size : extra === 2 ? LENGTH_OF_16_BITS : LENGTH_OF_64_BITS)
  if (extra === 2) frame.writeUInt16BE(size, 2)
  if (extra === 8) frame.writeBigUInt64BE(BigInt(size), 2)
  const mask = randomBytes(MASK_BYTES)
  const at = 2 + extra + MASK_BYTES
  mask.copy(frame, at - MASK_BYTES)
  for (let index = 0; index < size; index++) frame[at + index] = (payload[index] ?? 0) ^ (mask[index & 3] ?? 0)
  return frame
}

/** Makes a close frame. Without a code it is empty. */
export function closeFrame(code: number | undefined, reason = ''): Buffer {
  if (code === undefined) return createFrame(opcodes.close, Buffer.alloc(0))
  const text = Buffer.from(reason).subarray(0, MAX_CONTROL_BYTES - 2)
  const payload = Buffer.alloc(2 + text.byteLength)
  payload.writeUInt16BE(code)
  text.copy(payload, 2)
  return createFrame(opcodes.close, payload)
}

/**
 * Reads a server's messages until it closes or its stream ends; a close is the last. Throws a ProtocolError for a message
 * of more than `maxBytes`, for what the RFC forbids, and when `take` refuses so many bytes more. The bytes are given back
 * when the consumer asks for the next message.
 */
export async function* readMessages(
  source: ByteSource,
  maxBytes: number,
  take: (bytes: number) => boolean = () => true,
): AsyncGenerator<Message, void> {
  let opcode: number | undefined
  let pieces: Buffer[] = []
  let small: Buffer[] = []
  let bytes = 0
  for (;;) {
    const frame = await readFrame(source, maxBytes - bytes, take)
    if (!frame) return
    if (frame.opcode >= opcodes.close) {
      const control = parseControl(frame.opcode, frame.payload)
      if (control) yield control
      if (control?.kind === 'close') return
      continue
    }
    if ((frame.opcode === opcodes.continuation) !== (opcode !== undefined)) {
      throw new ProtocolError(1002, 'a message is not continued in order')
    }
    opcode ??= frame.opcode
    // Empty parts are dropped: no limit counts them, and there could be any number.
    if (frame.payload.byteLength > 0) small.push(frame.payload)
    bytes += frame.payload.byteLength
    if (small.length >= MAX_SMALL_PIECES || frame.isLast) {
      pieces.push(Buffer.concat(small))
      small = []
    }
    if (!frame.isLast) continue
    const whole = Buffer.concat(pieces)
    yield opcode === opcodes.text ? { kind: 'text', text: decodeText(whole) } : { kind: 'binary', bytes: whole }
    take(-bytes)
    opcode = undefined
    pieces = []
    bytes = 0
  }
}

async function readFrame(source: ByteSource, maxBytes: number, take: (bytes: number) => boolean) {
  const start = await readExactly(source, 2, true)
  if (!start) return undefined
  const [first = 0, second = 0] = start
  const opcode = first & 0x0f
  const isLast = (first & 0x80) !== 0
  if ((first & 0x70) !== 0) throw new ProtocolError(1002, 'an extension is used that was not agreed on')
  if ((second & 0x80) !== 0) throw new ProtocolError(1002, 'a frame of a server is masked')
  if (opcode > opcodes.pong || (opcode > opcodes.binary && opcode < opcodes.close)) {
    throw new ProtocolError(1002, 'a frame has an unknown opcode')
  }
  let size = second & 0x7f
  if (opcode >= opcodes.close && (size > MAX_CONTROL_BYTES || !isLast)) {
    throw new ProtocolError(1002, 'a control frame is too long or in parts')
  }
  if (size === LENGTH_OF_16_BITS) size = (await readExactly(source, 2)).readUInt16BE()
  else if (size === LENGTH_OF_64_BITS) size = Number((await readExactly(source, 8)).readBigUInt64BE())
  if (opcode < opcodes.close && size > maxBytes) throw new ProtocolError(1009, 'a message is too long')
  if (opcode < opcodes.close && !take(size)) throw new ProtocolError(1013, 'too many messages wait')
  return { opcode, isLast, payload: await readExactly(source, size) }
}

function parseControl(opcode: number, payload: Buffer): Message | undefined {
  if (opcode === opcodes.pong) return undefined
  if (opcode === opcodes.ping) return { kind: 'ping', bytes: payload }
  if (payload.byteLength === 0) return { kind: 'close', code: 1005, reason: '' }
  const code = payload.byteLength > 1 ? payload.readUInt16BE() : 0
  const isValid = (code >= 1000 && code <= 1014 && ![1004, 1005, 1006].includes(code)) || (code >= 3000 && code < 5000)
  if (!isValid) throw new ProtocolError(1002, 'a close has an invalid code')
  return { kind: 'close', code, reason: decodeText(payload.subarray(2)) }
}

function decodeText(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw new ProtocolError(1007, 'a text is not UTF-8')
  }
}

async function readExactly(source: ByteSource, count: number): Promise<Buffer>
async function readExactly(source: ByteSource, count: number, mayEnd: true): Promise<Buffer | undefined>
async function readExactly(source: ByteSource, count: number, mayEnd = false): Promise<Buffer | undefined> {
  const pieces: Buffer[] = []
  let left = count
  while (left > 0) {
    const piece = await source.read()
    if (!piece && mayEnd && left === count) return undefined
    if (!piece) throw new ProtocolError(1002, 'it ended within a frame')
    source.unread(piece.subarray(left))
    pieces.push(piece.subarray(0, left))
    left -= Math.min(left, piece.byteLength)
  }
  return Buffer.concat(pieces)
}
