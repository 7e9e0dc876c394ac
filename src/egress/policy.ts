import { type Address, embedsVersion4, isPublic } from './addresses.ts'
import { isNear } from './neighbours.ts'
import { hasPort, type Layer, matchesAddress, matchesName, type Rule } from './rules.ts'

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
  if (policy.mode === 'none') return 'this server lets sandboxes reach no network'
  const isNamed = (rule: Rule) => matchesName(rule, name, port)
  // Until the name is resolved, a rule for any address may allow it.
  const hasAddress = (rule: Rule) =>
    rule.range !== undefined && (address ? matchesAddress(rule, address, port) : hasPort(rule.ports, port))
  return findRuleDenial(policy, port, { isDenied: isNamed, isAllowed: rule => isNamed(rule) || hasAddress(rule) })
}

/** Why a target is denied at an address, for its name or for the address; undefined when it may be dialled. */
export const findDenial = (policy: Policy, target: Target, address: Address): string | undefined =>
  findNameDenial(policy, target) ?? findAddressDenial(policy, target, address)

/** Why a target whose name is not denied is denied at this address. */
function findAddressDenial(policy: Policy, { name, port }: Target, address: Address): string | undefined {
  if (embedsVersion4(address)) return 'its address stands for an IPv4 address'
  const hasAddress = (rule: Rule) => matchesAddress(rule, address, port)
  const isAllowed = (rule: Rule) => matchesName(rule, name, port) || hasAddress(rule)
  const denial = findRuleDenial(policy, port, { isDenied: hasAddress, isAllowed })
  if (denial !== undefined || (isPublic(address) && !isNear(address))) return denial
  if (!policy.layers.some(({ allow }) => allow?.some(hasAddress))) return 'its address is not public'
  if (policy.ceiling.some(hasAddress)) return undefined
  return 'its address is not public, and the operator does not permit it'
}

interface RuleTests {
  isDenied(rule: Rule): boolean
  isAllowed(rule: Rule): boolean
}

/** Why the rules deny a port: a deny rule, an allow-list without a rule for it, or a port for mail that no rule names. */
function findRuleDenial({ layers }: Policy, port: number, { isDenied, isAllowed }: RuleTests): string | undefined {
  const denied = layers.flatMap(({ deny }) => deny).find(isDenied)
  if (denied) return `${denied.text} is denied`
  if (layers.some(({ allow }) => allow && !allow.some(isAllowed))) return 'it is not on the allow-list'
  const allowsPort = ({ allow }: Layer) => allow?.some(rule => rule.ports !== undefined && isAllowed(rule))
  if (mailPorts.includes(port) && !layers.some(allowsPort)) return `port ${port} is for mail, and no rule allows it`
  return undefined
}
