import type { NetworkSpec } from '../../src/plugin-api/index.ts'

/** E2B's network options, and their description for the operator. */
export interface E2bNetwork {
  allowInternetAccess: boolean
  allowOut?: string[]
  denyOut?: string[]
  line: string
}

/** A parsed rule. E2B's rules can express only IPv4 addresses and names. */
interface Target {
  text: string
  name?: { base: string; isWildcard: boolean }
  range?: { first: number; bits: number }
  hasPort: boolean
}

const everything = '0.0.0.0/0'

/**
 * Converts rules to E2B's, in which an allowed target wins over a denied one, a denied target cannot be a name, and no target
 * has a port. A rule that E2B cannot express denies, never allows: a target is left out when a layer does not allow it in one
 * of its rules, or when it overlaps with a denied one.
 */
export function toE2bNetwork({ mode, layers }: NetworkSpec): E2bNetwork {
  const none = (why: string): E2bNetwork => ({
    allowInternetAccess: false,
    denyOut: [everything],
    line: `network: none${why}`,
  })
  if (mode === 'none') return none('')
  const denied = layers.flatMap(({ denyOut = [] }) => denyOut.map(parseTarget))
  const lists = layers.flatMap(({ allowOut }) => (allowOut ? [allowOut.map(parseTarget)] : []))
  const [first, ...others] = lists
  if (!first) {
    const name = denied.find(each => each.name)
    if (name) return none(`: E2B cannot deny a name alone (${name.text})`)
    const ranges = denied.flatMap(({ range }) => (range ? [toCidr(range)] : []))
    if (ranges.length === 0) return { allowInternetAccess: true, line: 'network: what is public, by itself' }
    return {
      allowInternetAccess: true,
      denyOut: ranges,
      line: `network: what is public, by itself, but ${ranges.join(', ')}`,
    }
  }
  const both = others.reduce((allowed, list) => allowed.flatMap(each => narrower(each, list)), first)
  const sayable = both.filter(
    each => !each.hasPort && (each.name || each.range) && !denied.some(deny => overlaps(each, deny)),
  )
  const allowOut = [...new Set(sayable.map(toText))]
  const lost = [
    ...new Set(first.filter(each => !sayable.some(({ text }) => text === each.text)).map(({ text }) => text)),
  ]
  const closed = lost.length > 0 ? `; not ${lost.join(', ')}, which E2B's rules cannot say with the others` : ''
  if (allowOut.length === 0) return none(closed)
  return {
    allowInternetAccess: true,
    allowOut,
    denyOut: [everything],
    line: `network: ${allowOut.join(', ')}, by itself; names on ports 80 and 443${closed}`,
  }
}

/** What both a target and a list allow: of each overlapping pair, the narrower one. */
function narrower(one: Target, list: readonly Target[]): Target[] {
  return list.flatMap(other => {
    if (covers(other, one)) return [{ ...one, hasPort: one.hasPort || other.hasPort }]
    return covers(one, other) ? [{ ...other, hasPort: one.hasPort || other.hasPort }] : []
  })
}

function covers(outer: Target, inner: Target): boolean {
  if (outer.range && inner.range) {
    const { first, bits } = outer.range
    return inner.range.bits >= bits && first === rangeStart(inner.range.first, bits)
  }
  if (!outer.name || !inner.name) return false
  if (!outer.name.isWildcard) return !inner.name.isWildcard && outer.name.base === inner.name.base
  const { base, isWildcard } = inner.name
  return base.endsWith(`.${outer.name.base}`) || (isWildcard && base === outer.name.base)
}

/** A name may resolve to any public address; E2B lets sandboxes reach no other address. */
const overlaps = (allowed: Target, denied: Target): boolean =>
  covers(allowed, denied) ||
  covers(denied, allowed) ||
  Boolean(allowed.name && denied.range && !isPrivate(denied.range))

const privateRanges = ['10.0.0.0/8', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.168.0.0/16']

const isPrivate = (range: NonNullable<Target['range']>): boolean =>
  privateRanges.some(text => covers(parseTarget(text), { text, range, hasPort: false }))

function parseTarget(text: string): Target {
  const [, host = text, port] = /^([^:[\]]*)(?::(.*))?$/.exec(text.trim()) ?? []
  const hasPort = port !== undefined
  const [, address, bits = '32'] = /^(\d+\.\d+\.\d+\.\d+)(?:\/(\d+))?$/.exec(host) ?? []
  if (address) {
    const number = address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0)
    return { text, hasPort, range: { first: rangeStart(number, Number(bits)), bits: Number(bits) } }
  }
  const isWildcard = host.startsWith('*.')
  const base = (isWildcard ? host.slice(2) : host).toLowerCase().replace(/\.$/, '')
  // An IPv6 address: these sandboxes have no IPv6.
  return /[:[\]]/.test(host) ? { text, hasPort } : { text, hasPort, name: { base, isWildcard } }
}

const rangeStart = (address: number, bits: number): number => address - (address % 2 ** (32 - bits))

const toText = ({ name, range, text }: Target): string =>
  range ? toCidr(range) : name ? `${name.isWildcard ? '*.' : ''}${name.base}` : text

const toCidr = ({ first, bits }: NonNullable<Target['range']>): string =>
  `${[24, 16, 8, 0].map(shift => Math.floor(first / 2 ** shift) % 256).join('.')}/${bits}`
