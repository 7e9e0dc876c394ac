const MASK = Buffer.from('***')

/** Removes a secret from bytes that come in pieces, also where it is split between two pieces. */
export interface Redactor {
  /** The bytes that can be passed on now, from these and those held back before. */
  push(bytes: Uint8Array): Buffer
  /** The bytes that are still held back. */
  end(): Buffer
}

/** Some providers repeat the key that they refuse, in an error or in an event of a stream. */
export function createRedactor(secret: string | undefined): Redactor {
  const needle = Buffer.from(secret ?? '')
  let held = Buffer.alloc(0)

  return {
    push(bytes) {
      if (needle.byteLength === 0) return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
      const passed: Buffer[] = []
      let rest = Buffer.concat([held, bytes])
      for (let at = rest.indexOf(needle); at >= 0; at = rest.indexOf(needle)) {
        passed.push(rest.subarray(0, at), MASK)
        rest = rest.subarray(at + needle.byteLength)
      }
      const kept = beginningAtEnd(rest, needle)
      held = rest.subarray(rest.byteLength - kept)
      passed.push(rest.subarray(0, rest.byteLength - kept))
      return Buffer.concat(passed)
    },
    end() {
      const last = held
      held = Buffer.alloc(0)
      return last
    },
  }
}

/** How many of the last bytes may be the beginning of the needle. */
function beginningAtEnd(bytes: Buffer, needle: Buffer): number {
  for (let length = Math.min(needle.byteLength - 1, bytes.byteLength); length > 0; length--) {
    if (bytes.subarray(bytes.byteLength - length).equals(needle.subarray(0, length))) return length
  }
  return 0
}
