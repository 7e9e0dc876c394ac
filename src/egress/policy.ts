import { type Address, embedsVersion4, isPublic } from './addresses.ts'
import { isNear } from './neighbours.ts'
import { hasPort, type Layer, matchesAddress, matchesName, type Rule } from './rules.ts'

/** What one sandbox may reach. Each layer must agree. */
export interface Policy {
  mode: 'public' | 'none'
  layers: readonly Layer[]
  /** The operator's: what of the addresses that are not public rules may name. */
  ceiling: readonly Rule[]
}

export interface Target {
  /** In small letters; an address for one that was named by its address. */
  name: string
  port: number
  /** What the name is, when it is an address. */
  address?: Address
}

/** Spam would be sent in the operator's name; a rule that names the port lets it pass. */
const mailPorts = [25, 465, 587, 2525]

/**
 * Why a target is refused whatever its addresses are; undefined when they decide. Asked first: resolving a name that is
 * refused would tell it to whoever serves that domain.
 */
export function refusalOfName(policy: Policy, { name, port, address }: Target): string | undefined {
  if (policy.mode === 'none') return 'this server lets sandboxes reach no network'
  const denied = denies(policy).find(rule => matchesName(rule, name, port))
  if (denied) return `${denied.text} is denied`
  const isHopeless = ({ allow }: Layer) =>
    allow &&
    !allow.some(rule => matchesName(rule, name, port)) &&
    !allow.some(rule => rule.range && (address ? matchesAddress(rule, address, port) : hasPort(rule.ports, port)))
  if (policy.layers.some(isHopeless)) return 'it is not on the allow-list'
  const namesPort = (rule: Rule) => rule.ports !== undefined && hasPort(rule.ports, port)
  if (mailPorts.includes(port) && !policy.layers.some(({ allow }) => allow?.some(namesPort))) {
    return refusalOfMail(port)
  }
  return undefined
}

/** Why a target, whose name was not refused, is refused at this address; undefined when it may be dialled. */
function refusalOfAddress(policy: Policy, { name, port }: Target, address: Address): string | undefined {
  if (embedsVersion4(address)) return 'its address stands for an IPv4 address'
  const denied = denies(policy).find(rule => matchesAddress(rule, address, port))
  if (denied) return `${denied.text} is denied`
  const allows = ({ allow }: Layer) =>
    !allow || allow.some(rule => matchesName(rule, name, port) || matchesAddress(rule, address, port))
  if (!policy.layers.every(allows)) return 'it is not on the allow-list'
  const namesPort = (rule: Rule) =>
    rule.ports !== undefined && (matchesName(rule, name, port) || matchesAddress(rule, address, port))
  if (mailPorts.includes(port) && !policy.layers.some(({ allow }) => allow?.some(namesPort))) return refusalOfMail(port)
  if (isPublic(address) && !isNear(address)) return undefined
  if (!policy.layers.some(({ allow }) => allow?.some(rule => matchesAddress(rule, address, port)))) {
    return 'its address is not public'
  }
  if (policy.ceiling.some(rule => matchesAddress(rule, address, port))) return undefined
  return 'its address is not public, and the operator does not permit it'
}

/** Why a target is refused at an address, for its name or for that; undefined when it may be dialled. */
export const refusalOf = (policy: Policy, target: Target, address: Address): string | undefined =>
  refusalOfName(policy, target) ?? refusalOfAddress(policy, target, address)

const refusalOfMail = (port: number) => `port ${port} is for mail, and no rule allows it`

const denies = ({ layers }: Policy): Rule[] => layers.flatMap(({ deny }) => [...deny])
