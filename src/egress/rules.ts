import { ApiError, messageOf } from '../errors.ts'
import { type Address, isWithin, parseAddress, parseRange, type Range } from '../read/addresses.ts'

/** A domain with or without its subdomains, or a range of addresses; on some ports or on all. */
export interface Rule {
  /** The rule as it was written. */
  text: string
  domain?: { name: string; isWildcard: boolean }
  range?: Range
  ports?: { from: number; to: number }
}

/** One list of rules. Without `allow`, everything that `deny` does not name is allowed; an empty `allow` allows nothing. */
export interface Layer {
  allow?: readonly Rule[]
  deny: readonly Rule[]
}

/** Names of up to 253 letters, digits, hyphens and underscores, in labels. */
const namePattern = /^(?=.{1,253}$)[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*$/

/** `example.com`, `*.example.com`, an address or a CIDR, each with `:port` or `:from-to`. Throws with what is wrong. */
export function parseRule(text: string): Rule {
  const trimmed = text.trim()
  const bracketed = /^\[([^\]]*)\](\/\d+)?(?::(.*))?$/.exec(trimmed)
  // More than one colon: an IPv6 address, which has its port only behind brackets.
  const isBare = !bracketed && trimmed.split(':').length > 2
  const [, plain = trimmed, plainPorts] = isBare || bracketed ? [] : (/^([^:]*)(?::(.*))?$/.exec(trimmed) ?? [])
  const host = bracketed ? `${bracketed[1]}${bracketed[2] ?? ''}` : plain
  const target: Pick<Rule, 'domain' | 'range'> | undefined = parseTarget(host)
  if (!target || (bracketed && target.range?.version !== 6)) {
    throw new Error(`${JSON.stringify(text)} is not a domain, address or CIDR`)
  }
  const ports = parsePorts(bracketed ? bracketed[3] : plainPorts, text)
  return { text: trimmed, ...target, ...(ports && { ports }) }
}

/** Parses each rule. Throws for the first that is wrong. */
export const parseRules = (texts: readonly string[]): Rule[] => texts.map(parseRule)

/** A host as programs write it, in small letters and without the last dot; undefined when it is no name or address. */
export function parseHost(text: string): { name: string; address?: Address } | undefined {
  const bracketed = /^\[(.*)\]$/.exec(text)
  const bare = bracketed?.[1] ?? text
  const address = parseAddress(bare)
  if (address) return (address.version === 6) === Boolean(bracketed) ? { name: bare.toLowerCase(), address } : undefined
  const name = text.toLowerCase().replace(/\.$/, '')
  return isName(name) ? { name } : undefined
}

export const matchesName = (rule: Rule, name: string, port: number): boolean =>
  hasPort(rule.ports, port) && hasName(rule, name)

/** Whether a rule is one for a name, whatever its ports are. */
export const hasName = ({ domain }: Rule, name: string): boolean =>
  domain !== undefined && (domain.isWildcard ? name.endsWith(`.${domain.name}`) : name === domain.name)

export const matchesAddress = ({ range, ports }: Rule, address: Address, port: number): boolean =>
  range !== undefined && hasPort(ports, port) && isWithin(address, range)

export const hasPort = (ports: Rule['ports'], port: number): boolean =>
  ports === undefined || (port >= ports.from && port <= ports.to)

function parseTarget(host: string): Pick<Rule, 'domain'> | Pick<Rule, 'range'> | undefined {
  const range = parseRange(host)
  if (range) return { range }
  const isWildcard = host.startsWith('*.')
  const name = (isWildcard ? host.slice(2) : host).toLowerCase().replace(/\.$/, '')
  return isName(name) ? { domain: { name, isWildcard } } : undefined
}

/** Resolvers read a last label of digits as an address: `127.1`, `2130706433`, `0x7f000001`. */
const isName = (name: string): boolean => namePattern.test(name) && !/(^|\.)(\d+|0x[0-9a-f]*)$/.test(name)

function parsePorts(text: string | undefined, rule: string): Rule['ports'] | undefined {
  if (text === undefined) return undefined
  const [, first = '', last = first] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(text) ?? []
  const [from, to] = [Number(first), Number(last)]
  if (first === '' || from < 1 || to > 65_535 || from > to) {
    throw new Error(`${JSON.stringify(rule)} has no port from 1 to 65535, or from-to`)
  }
  return { from, to }
}

/** Throws invalid_request that names the field and the first rule that is wrong. */
export function assertRules(field: string, rules: readonly string[]): void {
  for (const [index, text] of rules.entries()) {
    try {
      parseRule(text)
    } catch (error) {
      throw new ApiError('invalid_request', `${field}.${index}: ${messageOf(error)}`, { field })
    }
  }
}
