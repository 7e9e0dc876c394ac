import { isTooDeep } from '../../read/json.ts'

/**
 * The frames between a server and the guest in a sandbox, over any byte stream:
 * u32 payload length, u8 kind, u32 call, payload. Numbers are big-endian.
 */
export const PROTOCOL = 3

export const kinds = { hello: 0, open: 1, reply: 2, data: 3, end: 4, credit: 5, control: 6, close: 7 } as const

export type Kind = (typeof kinds)[keyof typeof kinds]

export interface Frame {
  kind: Kind
  call: number
  payload: Buffer
}

const HEADER_BYTES = 9

/** The largest payload that either side accepts. */
export const MAX_PAYLOAD_BYTES = 4 * 1024 * 1024

export function encodeFrame(kind: Kind, call: number, ...parts: readonly Uint8Array[]): Buffer {
  let length = 0
  for (const part of parts) length += part.byteLength
  const frame = Buffer.allocUnsafe(HEADER_BYTES + length)
  frame.writeUInt32BE(length, 0)
  frame[4] = kind
  frame.writeUInt32BE(call, 5)
  let offset = HEADER_BYTES
  for (const part of parts) {
    frame.set(part, offset)
    offset += part.byteLength
  }
  return frame
}

/** Cuts a byte stream into frames. Throws on a length or kind that no peer of ours sends; keeps at most one frame. */
export function createDecoder(
  onFrame: (frame: Frame) => void,
  maxPayloadBytes = MAX_PAYLOAD_BYTES,
): (bytes: Buffer) => void {
  let held: Buffer[] = []
  let heldBytes = 0
  let wanted = HEADER_BYTES

  return bytes => {
    held.push(bytes)
    heldBytes += bytes.byteLength
    if (heldBytes < wanted) return
    let buffer = held.length === 1 ? bytes : Buffer.concat(held, heldBytes)
    for (;;) {
      wanted = HEADER_BYTES
      if (buffer.byteLength < HEADER_BYTES) break
      const length = buffer.readUInt32BE(0)
      const kind = buffer.readUInt8(4)
      if (length > maxPayloadBytes) throw new Error(`a frame of ${length} bytes`)
      if (!isKind(kind)) throw new Error(`a frame of unknown kind ${kind}`)
      wanted = HEADER_BYTES + length
      if (buffer.byteLength < wanted) break
      onFrame({ kind, call: buffer.readUInt32BE(5), payload: buffer.subarray(HEADER_BYTES, wanted) })
      buffer = buffer.subarray(wanted)
    }
    held = buffer.byteLength > 0 ? [buffer] : []
    heldBytes = buffer.byteLength
  }
}

const isKind = (value: number): value is Kind => value <= kinds.close

export const json = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))

/** Throws for what is not JSON, or is nested too deep. */
export function parse(payload: Buffer): unknown {
  if (isTooDeep(payload)) throw new Error('a message that is nested too deep')
  return JSON.parse(payload.toString('utf8'))
}
