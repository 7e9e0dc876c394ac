import { readFields } from './fields.ts'

/** A server's statement of its identity in a connection's key exchange. */
export interface HostIdentity {
  /** The host's public key in SSH's encoding. */
  hostKey: Buffer
  /** The signature by that key over what becomes the session's id. */
  signature: Buffer
}

const KEX_REPLIES = [31, 33]
const NEW_KEYS = 21

/** How many bytes a server may send before its version line. None is known to send many. */
const MAX_BANNER_BYTES = 16 * 1024
/** The size of packets that every implementation must accept. */
const MAX_PACKET_BYTES = 35_000
const MAX_PACKETS = 64

/**
 * Reads what an SSH server sends before encryption begins. Calls back once, when the server has signed its key exchange.
 * Anything that is not SSH is passed over; `take` returns false when nothing more is wanted.
 */
export function watchExchange(onIdentity: (identity: HostIdentity) => void): { take(bytes: Buffer): boolean } {
  let held: Buffer = Buffer.alloc(0)
  let isPastBanner = false
  let packets = 0

  /** Returns the bytes after the packet that was read; undefined when more must come, and null when no more is wanted. */
  const readPacket = (): Buffer | undefined | null => {
    if (held.length < 5) return undefined
    const length = held.readUInt32BE(0)
    const padding = held.readUInt8(4)
    if (length > MAX_PACKET_BYTES || padding + 2 > length || packets === MAX_PACKETS) return null
    if (held.length < 4 + length) return undefined
    packets++
    const payload = held.subarray(5, 4 + length - padding)
    if (payload[0] === NEW_KEYS) return null
    const identity = KEX_REPLIES.includes(payload[0] ?? 0) ? readIdentity(payload.subarray(1)) : undefined
    if (!identity) return held.subarray(4 + length)
    onIdentity(identity)
    return null
  }

  /** Returns what `readPacket` does. */
  const readLine = (): Buffer | undefined | null => {
    const end = held.indexOf('\n')
    if (end < 0) return held.length > MAX_BANNER_BYTES ? null : undefined
    isPastBanner = held.subarray(0, 4).equals(Buffer.from('SSH-'))
    return held.subarray(end + 1)
  }

  return {
    take(bytes) {
      held = held.length > 0 ? Buffer.concat([held, bytes]) : Buffer.from(bytes)
      for (;;) {
        const left = isPastBanner ? readPacket() : readLine()
        if (left === undefined) return true
        if (left === null) {
          held = Buffer.alloc(0)
          return false
        }
        held = left
      }
    },
  }
}

/** Undefined for the other message with this number, which has two integers and no key. */
function readIdentity(payload: Buffer): HostIdentity | undefined {
  try {
    const fields = readFields(payload)
    const hostKey = Buffer.from(fields.string())
    fields.string()
    const signature = Buffer.from(fields.string())
    fields.end()
    readFields(hostKey).text()
    return { hostKey, signature }
  } catch {
    return undefined
  }
}
