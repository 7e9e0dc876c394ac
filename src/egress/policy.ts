import { HttpError } from '../http1/http-error.ts'
import { type Address, embedsVersion4, isPublic, isWithin, parseAddress } from '../read/addresses.ts'
import { isNear } from './neighbours.ts'
import { hasName, hasPort, type Layer, matchesAddress, matchesName, type Rule } from './rules.ts'

/** What one sandbox may reach. Each layer must agree. */
export interface Policy {
  mode: 'public' | 'none'
  layers: readonly Layer[]
  /** Private ranges that rules may allow, set by the operator. */
  ceiling: readonly Rule[]
}

export interface Target {
  /** In small letters; the address where the program named no host. */
  name: string
  port: number
  /** The name as an address, when it is one. */
  address?: Address
}

/** Spam would be sent in the operator's name, so only a rule that names the port allows one of these. */
const mailPorts = [25, 465, 587, 2525]

/**
 * Why a target is denied whatever its addresses are; undefined when its addresses decide. To be asked before the name is
 * resolved: the question for a denied name would itself reach whoever serves that domain.
 */
export function findNameDenial(policy: Policy, { name, port, address }: Target): string | undefined {
  if (policy.mode === 'none') return NO_NETWORK
  const isNamed = (rule: Rule) => matchesName(rule, name, port)
  // Until the name is resolved, a rule for any address may allow it.
  const hasAddress = (rule: Rule) =>
    rule.range !== undefined && (address ? matchesAddress(rule, address, port) : hasPort(rule.ports, port))
  return findRuleDenial(policy, port, { isDenied: isNamed, isAllowed: rule => isNamed(rule) || hasAddress(rule) })
}

/** Why a target is denied at an address, for its name or for the address; undefined when it may be dialled. */
export const findDenial = (policy: Policy, target: Target, address: Address): string | undefined =>
  findNameDenial(policy, target) ?? findAddressDenial(policy, target, address)

/**
 * Why a name is denied at every port; undefined when some port may be allowed. It is also checked before the name is resolved.
 */
export const findNameDenialAtEachPort = (policy: Policy, name: string): string | undefined =>
  findDenialAtEachPort(
    policy,
    rule => rule.range !== undefined || hasName(rule, name),
    port => findNameDenial(policy, { name, port }),
  )

/** Why an address is denied at every port, for the name that the DNS gave it or for itself. */
export const findAddressDenialAtEachPort = (policy: Policy, name: string, address: Address): string | undefined =>
  findDenialAtEachPort(
    policy,
    ({ range, ...rule }) => (range ? isWithin(address, range) : hasName(rule, name)),
    port => findDenial(policy, { name, port, address }, address),
  )

/** When every port is denied, the reason is the one for the port of https. */
function findDenialAtEachPort(
  { layers }: Policy,
  isAbout: (rule: Rule) => boolean,
  denialAt: (port: number) => string | undefined,
): string | undefined {
  const reason = denialAt(443)
  if (reason === undefined) return undefined
  const about = layers.flatMap(({ allow = [], deny }) => [...allow, ...deny]).filter(isAbout)
  // An allowed range of ports begins where some rule begins, or right after one has ended.
  const edges = about.flatMap(({ ports }) => (ports ? [ports.from, ports.to + 1] : []))
  if (edges.length === 0) return reason
  const ports = new Set([1, ...edges, ...mailPorts.map(port => port + 1)].filter(port => port <= 65_535))
  return ports.values().some(port => denialAt(port) === undefined) ? undefined : reason
}

/**
 * Why a target that was refused is refused by these rules too, as far as can be told without resolving its name. What was found
 * out about its addresses still holds, and a range of addresses allows no name.
 */
export function findLastingDenial(
  policy: Policy,
  { host, port, isName, reason }: { host: string; port: number; isName?: true; reason?: string },
): string | undefined {
  const address = parseAddress(host)
  if (address) return findDenial(policy, { name: host, port, address }, address)
  if (policy.mode === 'none') return NO_NETWORK
  const denialAt = (port: number) => {
    const isNamed = (rule: Rule) => matchesName(rule, host, port)
    return findRuleDenial(policy, port, { isDenied: isNamed, isAllowed: isNamed })
  }
  const isOfAddress = addressDenials.some(denial => denial === reason)
  const isOfRange = policy.layers.some(({ deny }) => deny.some(rule => rule.range && reason === textOfDenial(rule)))
  const denial = isName ? findDenialAtEachPort(policy, rule => hasName(rule, host), denialAt) : denialAt(port)
  return denial ?? (isOfAddress || isOfRange ? reason : undefined)
}

const NO_NETWORK = 'this server lets sandboxes reach no network'

/** The kinds of addresses that are denied even when no rule denies them. */
const addressDenials = [
  'its address stands for an IPv4 address',
  'its address is not public',
  'its address is not public, and the operator does not permit it',
] as const
const [IS_EMBEDDED, IS_PRIVATE, IS_NOT_PERMITTED] = addressDenials

const textOfDenial = ({ text }: Rule): string => `${text} is denied`

/** Why a target whose name is not denied is denied at this address. */
function findAddressDenial(policy: Policy, { name, port }: Target, address: Address): string | undefined {
  if (embedsVersion4(address)) return IS_EMBEDDED
  const hasAddress = (rule: Rule) => matchesAddress(rule, address, port)
  const isAllowed = (rule: Rule) => matchesName(rule, name, port) || hasAddress(rule)
  const denial = findRuleDenial(policy, port, { isDenied: hasAddress, isAllowed })
  if (denial !== undefined || (isPublic(address) && !isNear(address))) return denial
  if (!policy.layers.some(({ allow }) => allow?.some(hasAddress))) return IS_PRIVATE
  if (policy.ceiling.some(hasAddress)) return undefined
  return IS_NOT_PERMITTED
}

interface RuleTests {
  isDenied(rule: Rule): boolean
  isAllowed(rule: Rule): boolean
}

/** Why the rules deny a port: a deny rule, an allow-list without a rule for it, or a port for mail that no rule names. */
function findRuleDenial({ layers }: Policy, port: number, { isDenied, isAllowed }: RuleTests): string | undefined {
  const denied = layers.flatMap(({ deny }) => deny).find(isDenied)
  if (denied) return textOfDenial(denied)
  if (layers.some(({ allow }) => allow && !allow.some(isAllowed))) return 'it is not on the allow-list'
  const allowsPort = ({ allow }: Layer) => allow?.some(rule => rule.ports !== undefined && isAllowed(rule))
  if (mailPorts.includes(port) && !layers.some(allowsPort)) return `port ${port} is for mail, and no rule allows it`
  return undefined
}

/** Whether rules allow an address. When the rules cannot be read, nothing is allowed. */
export function isAllowed(policy: () => Policy, target: Target, address: Address): boolean {
  try {
    return findDenial(policy(), target, address) === undefined
  } catch {
    return false
  }
}

/** The present rules. Throws an HttpError when they cannot be read, so that nothing is reached. */
export function currentPolicy(policyOf: (environmentId: string) => Policy, environmentId: string): Policy {
  try {
    return policyOf(environmentId)
  } catch {
    throw new HttpError(503, 'the rules of this sandbox are not known')
  }
}
