/** The options of getsockopt that return the address that a connection was made to before it was redirected, by the version of IP. */
export const originalDestination = {
  4: { level: 0, option: 80, bytes: 16 },
  6: { level: 41, option: 80, bytes: 28 },
} as const

/** True when the address belongs to the redirecting machine, which no redirected address does. */
export const isOwnAddress = (address: string): boolean => address.startsWith('127.') || address === '::1'

/** The address and port of a `sockaddr_in` or a `sockaddr_in6`; the address is a text. */
export function readSocketAddress(version: 4 | 6, bytes: Uint8Array): { address: string; port: number } {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const port = view.readUInt16BE(2)
  if (version === 4) return { address: view.subarray(4, 8).join('.'), port }
  const groups = Array.from({ length: 8 }, (_, at) => view.readUInt16BE(8 + 2 * at).toString(16))
  // This is the usual short form.
  return { address: new URL(`http://[${groups.join(':')}]/`).hostname.slice(1, -1), port }
}
