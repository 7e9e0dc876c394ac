/** An IP address as a number of 32 or 128 bits. */
export interface Address {
  version: 4 | 6
  value: bigint
}

/** All addresses that begin with the first `bits` of `value`. */
export interface Range extends Address {
  bits: number
}

const widths = { 4: 32, 6: 128 } as const

/** An address in its usual text form; undefined for anything else, also for `127.1`, `0x7f.0.0.1` and zones. */
export function parseAddress(text: string): Address | undefined {
  return text.includes(':') ? parseVersion6(text) : parseVersion4(text)
}

/** `address/bits`, or one address alone. Undefined for anything else, and when bits beyond the prefix are set. */
export function parseRange(text: string): Range | undefined {
  const slash = text.indexOf('/')
  const address = parseAddress(slash < 0 ? text : text.slice(0, slash))
  if (!address) return undefined
  const width = widths[address.version]
  if (slash < 0) return { ...address, bits: width }
  const suffix = text.slice(slash + 1)
  const bits = Number(suffix)
  if (!/^(0|[1-9]\d{0,2})$/.test(suffix) || bits > width) return undefined
  const range = { ...address, bits }
  return getPrefix(range, bits) << BigInt(width - bits) === address.value ? range : undefined
}

/** The usual text form of an address: IPv6 in its shortest form. */
export function formatAddress({ version, value }: Address): string {
  if (version === 4) return [24n, 16n, 8n, 0n].map(shift => (value >> shift) & 0xffn).join('.')
  const groups = value.toString(16).padStart(32, '0').match(/.{4}/g) ?? []
  // The URL parser writes the shortest form.
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1)
}

export const isWithin = (address: Address, range: Range): boolean =>
  address.version === range.version && getPrefix(address, range.bits) === getPrefix(range, range.bits)

/** Whether an IPv6 address contains an IPv4 address: then it depends on the network where it leads. */
export const embedsVersion4 = (address: Address): boolean =>
  address.version === 6 && address.value > 1n && embedding().some(range => isWithin(address, range))

/** IPv4 addresses within IPv6, as a socket for both versions writes them, in the form of IPv4; every other range as it is. */
export function withoutMapping(range: Range): Range {
  const { version, value, bits } = range
  if (version === 4 || bits < 96 || value >> 32n !== 0xffffn) return range
  return { version: 4, value: value & 0xffffffffn, bits: bits - 96 }
}

/**
 * Whether an address leads to the same host from anywhere: it is no loopback, private, link-local, metadata or reserved address.
 */
export function isPublic(address: Address): boolean {
  if (address.version === 6 && !globalUnicast().some(range => isWithin(address, range))) return false
  return !special().some(range => isWithin(address, range))
}

const getPrefix = ({ version, value }: Address, bits: number): bigint => value >> BigInt(widths[version] - bits)

function parseVersion4(text: string): Address | undefined {
  const parts = text.split('.')
  if (parts.length !== 4 || !parts.every(part => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) < 256))
    return undefined
  return { version: 4, value: parts.reduce((value, part) => (value << 8n) | BigInt(part), 0n) }
}

function parseVersion6(text: string): Address | undefined {
  const last = text.slice(text.lastIndexOf(':') + 1)
  const tail = last.includes('.') ? parseVersion4(last) : undefined
  if (last.includes('.') && !tail) return undefined
  const whole = tail ? `${text.slice(0, -last.length)}${hex(tail.value >> 16n)}:${hex(tail.value & 0xffffn)}` : text
  const halves = whole.split('::')
  if (halves.length > 2) return undefined
  const [head = [], rest = []] = halves.map(half => (half === '' ? [] : half.split(':')))
  const missing = 8 - head.length - rest.length
  if (halves.length === 2 ? missing < 1 : missing !== 0) return undefined
  const groups = [...head, ...Array<string>(missing).fill('0'), ...rest]
  if (!groups.every(group => /^[0-9a-f]{1,4}$/i.test(group))) return undefined
  return { version: 6, value: groups.reduce((value, group) => (value << 16n) | BigInt(`0x${group}`), 0n) }
}

const hex = (value: bigint) => value.toString(16)

/** Ranges are parsed at their first use, because a server starts without them. */
function ranges(...texts: string[]): () => readonly Range[] {
  let parsed: readonly Range[] | undefined
  return () => (parsed ??= texts.map(range))
}

function range(text: string): Range {
  const parsed = parseRange(text)
  if (!parsed) throw new Error(`not a range: ${text}`)
  return parsed
}

/**
 * The ranges in which an IPv6 address contains an IPv4 address: compatible, mapped, translated, NAT64 (also its local prefix),
 * Teredo, 6to4.
 */
const embedding = ranges(
  ...['::/96', '::ffff:0:0/96', '::ffff:0:0:0/96', '64:ff9b::/96', '64:ff9b:1::/48', '2001::/32', '2002::/16'],
)

const globalUnicast = ranges('2000::/3')

/**
 * The IANA's registries of special-purpose addresses, those for documentation among them; and 168.63.129.16, where Azure
 * serves its metadata.
 */
const special = ranges(
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24'],
  ...['192.0.2.0/24', '192.31.196.0/24', '192.52.193.0/24', '192.88.99.0/24', '192.168.0.0/16', '192.175.48.0/24'],
  ...['198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/4', '240.0.0.0/4', '168.63.129.16/32'],
  ...['2001::/23', '2001:db8::/32', '2002::/16', '2620:4f:8000::/48', '3fff::/20'],
)
