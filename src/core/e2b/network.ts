import { bounds, excerpt } from '../../bounds.ts'
import { ApiError } from '../../errors.ts'
import type { E2bNetwork } from '../../model/e2b-sandbox.ts'
import { formatAddress, isWithin, parseAddress, type Range } from '../../read/addresses.ts'

/** Network rules as E2B's API has them. An absent list changes nothing. */
export interface NetworkWish {
  allowOut?: readonly string[] | undefined
  denyOut?: readonly string[] | undefined
  allowInternetAccess?: boolean | undefined
}

/** E2B's word for all addresses. */
export const EVERYTHING = '0.0.0.0/0'

const refuse = (field: string, what: string) => new ApiError('invalid_request', `${field}: ${what}`, { field })

/**
 * Translates E2B's rules, in which an allowed target wins over a denied one, to this server's, in which a denied one wins. Throws
 * invalid_request for rules that E2B refuses too: names that are denied, and names that are allowed while not all else is denied.
 */
export function readNetwork({ allowOut = [], denyOut = [], allowInternetAccess = true }: NetworkWish): {
  network: E2bNetwork
  rules: { networkAllowOut?: string[]; networkDenyOut?: string[] }
} {
  const allowed = allowOut.map(text => readTarget('allowOut', text))
  const denied = denyOut.map(text => readTarget('denyOut', text))
  const named = denied.find(({ range }) => !range)
  if (named) throw refuse('denyOut', `${excerpt(named.text)} is a name, and only addresses can be denied`)
  const network = {
    allowOut: [...allowOut],
    denyOut: allowInternetAccess || denyOut.includes(EVERYTHING) ? [...denyOut] : [...denyOut, EVERYTHING],
  }
  const isClosed = !allowInternetAccess || denied.some(({ range }) => range?.version === 4 && range.bits === 0)
  if (isClosed) return { network, rules: { networkAllowOut: allowed.map(({ text }) => text) } }
  const name = allowed.find(({ range }) => !range)
  if (name) throw refuse('allowOut', `${excerpt(name.text)} is a name, which needs ${EVERYTHING} in denyOut`)
  const ranges = allowed.flatMap(({ range }) => range ?? [])
  const left: Range[] = []
  for (const range of disjoint(denied.flatMap(({ range }) => range ?? []))) {
    for (const part of without(range, ranges)) {
      if (left.length === bounds.networkRules) throw refuse('denyOut', 'too many parts of it are allowed')
      left.push(part)
    }
  }
  return { network, rules: left.length > 0 ? { networkDenyOut: left.map(format) } : {} }
}

interface Target {
  /** The target in the form of this server's rules. */
  text: string
  /** Absent when the target is a name. */
  range?: Range
}

function readTarget(field: string, text: string): Target {
  const [host = '', bits] = text.trim().split('/', 2)
  const address = parseAddress(host)
  if (!address) {
    if (bits !== undefined || !/^(\*\.)?[\w.-]+$/.test(host) || /^[\d.]+$/.test(host))
      throw refuse(field, `${JSON.stringify(excerpt(text))} is not an address, CIDR or name`)
    return { text: host }
  }
  const width = address.version === 4 ? 32 : 128
  const length = Number(bits ?? width)
  if (bits !== undefined && (!/^\d{1,3}$/.test(bits) || length > width))
    throw refuse(field, `${JSON.stringify(excerpt(text))} is not a CIDR`)
  const rest = BigInt(width - length)
  const range = { version: address.version, value: (address.value >> rest) << rest, bits: length }
  return { text: format(range), range }
}

/** Returns ranges that cover the same addresses, none within another. */
function disjoint(ranges: readonly Range[]): Range[] {
  const sorted = ranges.toSorted(
    (one, other) =>
      one.version - other.version ||
      Number(one.value > other.value) - Number(one.value < other.value) ||
      one.bits - other.bits,
  )
  const kept: Range[] = []
  for (const range of sorted) {
    const last = kept.at(-1)
    if (!last || !isWithin(range, last)) kept.push(range)
  }
  return kept
}

/** Yields the parts of a range that none of `ranges` covers, one after the other, because there may be very many. */
function* without(range: Range, ranges: readonly Range[]): Generator<Range, void> {
  if (ranges.some(each => each.bits <= range.bits && isWithin(range, each))) return
  const inside = ranges.filter(each => each.bits > range.bits && isWithin(each, range))
  if (inside.length === 0) return yield range
  const bits = range.bits + 1
  const half = 1n << BigInt((range.version === 4 ? 32 : 128) - bits)
  for (const value of [range.value, range.value + half]) yield* without({ ...range, value, bits }, inside)
}

const format = (range: Range): string => `${formatAddress(range)}/${range.bits}`
