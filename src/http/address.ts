import { type Address, formatAddress, isWithin, parseRange, type Range, withoutMapping } from '../read/addresses.ts'
import { findContext } from './context.ts'

/** How many hops of the header are read at most: no server has more proxies in front of it. */
const MAX_HOPS = 32

/** The address of the caller that sent this request; undefined when its connection was closed at once. */
export const addressOf = (request: Request): string | undefined => findContext(request)?.address

/** What a server knows of where a request comes from. */
export interface CallerConnection {
  /** The other end of the request's connection; undefined when it has closed. */
  socketAddress: string | undefined
  /** The header `X-Forwarded-For`. Anyone may send it: only what trusted proxies have added is believed. */
  forwardedFor: string | null
}

/**
 * Finds the caller's address: that of its connection, unless a trusted proxy holds the connection. Then it is the right-most
 * address of `X-Forwarded-For` that is no trusted proxy. What stands to the left of it was sent by the caller itself, and counts for
 * nothing. A hop that is no address ends the search: the proxy that passed it on counts as the caller. IPv6 addresses are in
 * their shortest form, IPv4 ones never within IPv6.
 */
export function findAddress(
  { socketAddress, forwardedFor }: CallerConnection,
  trusted: readonly Range[],
): string | undefined {
  const isPlain = trusted.length === 0 && socketAddress !== undefined && !socketAddress.includes(':')
  if (socketAddress === undefined || isPlain) return socketAddress
  let caller = parseHop(socketAddress)
  if (!caller) return socketAddress
  let rest = forwardedFor ?? ''
  for (let hops = 0; hops < MAX_HOPS && rest !== '' && isTrusted(caller, trusted); hops++) {
    const comma = rest.lastIndexOf(',')
    const hop = parseHop(rest.slice(comma + 1).trim())
    if (!hop) break
    caller = hop
    rest = comma < 0 ? '' : rest.slice(0, comma)
  }
  return formatAddress(caller)
}

const isTrusted = (address: Address, trusted: readonly Range[]) => trusted.some(range => isWithin(address, range))

/** Reads an address, with a port or without, as proxies write it: `1.2.3.4:80`, `[::1]:80`. */
function parseHop(text: string): Address | undefined {
  const [, bracketed, dotted] = /^(?:\[([0-9a-f:.]{2,45})\](?::\d{1,5})?|([\d.]{7,15}):\d{1,5})$/i.exec(text) ?? []
  // A link-local address names its interface after `%`.
  const [address = ''] = (bracketed ?? dotted ?? text).split('%', 1)
  const range = address.includes('/') ? undefined : parseRange(address)
  return range && withoutMapping(range)
}
