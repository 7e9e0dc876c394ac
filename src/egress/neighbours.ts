import { closeSync, openSync, readSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { type Address, isWithin, parseRange, type Range } from '../read/addresses.ts'

/**
 * Whether an address belongs to this machine, to a network that it is part of, or to a gateway, as a router or a database
 * in the same rack. Those may be public addresses too. The system is asked each time: interfaces come and go.
 */
export const isNear = (address: Address): boolean => nearRanges().some(range => isWithin(address, range))

function nearRanges(): Range[] {
  const own = Object.values(networkInterfaces()).flatMap(each => each ?? [])
  return [
    ...own.flatMap(({ cidr }) => (cidr === null ? [] : toNetwork(cidr))),
    ...parseRoutes4(readTable('/proc/net/route')),
    ...parseRoutes6(readTable('/proc/net/ipv6_route')),
  ]
}

/** `10.0.0.5/24` gives 10.0.0.0/24. A prefix that spans half of all addresses is a tunnel to the internet. */
function toNetwork(cidr: string): Range[] {
  const [address = '', bits = ''] = cidr.split('/')
  const host = parseRange(address.split('%', 1)[0] ?? '')
  return host ? cut(host, Number(bits)) : []
}

/** A shorter prefix is a route to the internet, and no network of neighbours. */
const MIN_BITS = { 4: 8, 6: 16 } as const

function cut({ version, value, bits: width }: Range, bits: number): Range[] {
  if (bits < MIN_BITS[version]) return [{ version, value, bits: width }]
  const shift = BigInt(width - bits)
  return [{ version, value: (value >> shift) << shift, bits }]
}

const FLAG_GATEWAY = 2
const FLAG_REJECT = 0x200

/** The linked networks and gateways in the text of /proc/net/route. */
export function parseRoutes4(table: string): Range[] {
  return table.split('\n').flatMap(line => {
    const [, destination = '', gateway = '', flags = '', , , , mask = ''] = line.split('\t')
    if (![destination, gateway, mask].every(field => /^[0-9A-F]{8}$/.test(field))) return []
    // Little-endian, as in this machine's memory.
    const [to, by, bits] = [destination, gateway, mask].map(hex => Buffer.from(hex, 'hex').reverse().readUInt32BE())
    return toRanges({
      version: 4,
      to: BigInt(to ?? 0),
      bits: (bits ?? 0).toString(2).replaceAll('0', '').length,
      by: BigInt(by ?? 0),
      flags: Number.parseInt(flags, 16),
    })
  })
}

/** The linked networks and gateways in the text of /proc/net/ipv6_route. */
export function parseRoutes6(table: string): Range[] {
  return table.split('\n').flatMap(line => {
    const [to = '', bits = '', , , by = '', , , , flags = ''] = line.split(' ').filter(Boolean)
    if (![to, by].every(field => /^[0-9a-f]{32}$/.test(field))) return []
    return toRanges({
      version: 6,
      to: BigInt(`0x${to}`),
      bits: Number.parseInt(bits, 16),
      by: BigInt(`0x${by}`),
      flags: Number.parseInt(flags, 16),
    })
  })
}

interface Route {
  version: 4 | 6
  to: bigint
  bits: number
  by: bigint
  flags: number
}

function toRanges({ version, to, bits, by, flags }: Route): Range[] {
  if (flags & FLAG_REJECT) return []
  const width = version === 4 ? 32 : 128
  if (flags & FLAG_GATEWAY) return [{ version, value: by, bits: width }]
  return bits < MIN_BITS[version] ? [] : [{ version, value: to, bits }]
}

/** Enough for some thousand routes. A router's table of the whole internet would take seconds at every dial. */
const MAX_TABLE_BYTES = 256 * 1024

/** Empty when there is no such file. */
function readTable(path: string): string {
  let fd: number
  try {
    fd = openSync(path, 'r')
  } catch {
    return ''
  }
  try {
    const buffer = Buffer.allocUnsafe(MAX_TABLE_BYTES)
    let length = 0
    for (let read = -1; read !== 0 && length < buffer.byteLength; length += read) {
      read = readSync(fd, buffer, length, buffer.byteLength - length, null)
    }
    return buffer.toString('latin1', 0, length)
  } finally {
    closeSync(fd)
  }
}
