import { parseAddress } from '../../read/addresses.ts'

const NETWORK_BITS = 64n

/** Returns the text by which an address is counted: one customer has all addresses of an IPv6 network of 64 bits. */
export function networkOf(address: string): string {
  if (!address.includes(':')) return address
  const parsed = parseAddress(address)
  return parsed ? `${(parsed.value >> NETWORK_BITS).toString(16)}::/64` : address
}
