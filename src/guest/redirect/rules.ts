import { DIRECT_PORT, NAMES_PORT, OWN_ADDRESS, OWN_ADDRESS_6 } from './addresses.ts'
import {
  attribute,
  be16,
  be32,
  be64,
  type NetlinkMessage,
  NLM_F_ACK,
  NLM_F_APPEND,
  NLM_F_CREATE,
  NLM_F_EXCL,
  nested,
  text,
  u8,
} from './netlink.ts'

const TABLE = 'threadbox'
const NFNL_SUBSYS_NFTABLES = 10
const [BATCH_BEGIN, BATCH_END] = [0x10, 0x11]
const [NEWTABLE, DELTABLE, NEWCHAIN, NEWRULE] = [0, 2, 3, 6].map(type => (NFNL_SUBSYS_NFTABLES << 8) | type)
const [NFPROTO_UNSPEC, NFPROTO_INET, NFPROTO_IPV4, NFPROTO_IPV6] = [0, 1, 2, 10]
const NF_INET_LOCAL_OUT = 3
/** The kernel begins to track connections at priority -200. */
const [PRIORITY_RAW, PRIORITY_PACE, PRIORITY_NAT, PRIORITY_FILTER] = [-300, -299, -100, 0]
const [VERDICT_REGISTER, REGISTER] = [0, 1]
const [NF_DROP, NF_ACCEPT] = [0, 1]
const EQUAL = 0
const [META_NFPROTO, META_L4PROTO] = [15, 16]
const [NETWORK_HEADER, TRANSPORT_HEADER] = [1, 2]
const [ICMP, TCP, UDP, ICMP_6] = [1, 6, 17, 58]
const [REJECT_TCP_RESET, REJECT_ICMPX] = [1, 2]
const [PORT_UNREACHABLE, ADMIN_PROHIBITED] = [1, 3]

const [TCP_SYN, TCP_ACK] = [2, 16]
const [LIMIT_PACKETS, LIMIT_INVERTED] = [0, 1]

type Expression = Uint8Array

const expression = (name: string, ...data: readonly Uint8Array[]): Expression =>
  nested(1, attribute(1, text(name)), nested(2, ...data))

const meta = (key: number) => expression('meta', attribute(1, be32(REGISTER)), attribute(2, be32(key)))
const payload = (base: number, offset: number, length: number) =>
  expression(
    'payload',
    attribute(1, be32(REGISTER)),
    attribute(2, be32(base)),
    attribute(3, be32(offset)),
    attribute(4, be32(length)),
  )
const equals = (value: Uint8Array) =>
  expression('cmp', attribute(1, be32(REGISTER)), attribute(2, be32(EQUAL)), nested(3, attribute(1, value)))
const redirectTo = (port: number): Expression[] => [
  expression('immediate', attribute(1, be32(REGISTER)), nested(2, attribute(1, be16(port)))),
  expression('redir', attribute(1, be32(REGISTER))),
]
const verdict = (code: number) =>
  expression('immediate', attribute(1, be32(VERDICT_REGISTER)), nested(2, nested(2, attribute(1, be32(code)))))
const [drop, accept] = [verdict(NF_DROP), verdict(NF_ACCEPT)]
const reject = (type: number, code: number) => expression('reject', attribute(1, be32(type)), attribute(2, u8(code)))

const version = (protocol: number) => [meta(META_NFPROTO), equals(u8(protocol))]
const transport = (protocol: number) => [meta(META_L4PROTO), equals(u8(protocol))]
const fromPort = (port: number) => [payload(TRANSPORT_HEADER, 0, 2), equals(be16(port))]
const toPort = (port: number) => [payload(TRANSPORT_HEADER, 2, 2), equals(be16(port))]
/** Matches the first packet of a connection: SYN is set, and ACK is not. */
const begins = [
  payload(TRANSPORT_HEADER, 13, 1),
  expression(
    'bitwise',
    attribute(1, be32(REGISTER)),
    attribute(2, be32(REGISTER)),
    attribute(3, be32(1)),
    nested(4, attribute(1, u8(TCP_SYN | TCP_ACK))),
    nested(5, attribute(1, u8(0))),
  ),
  equals(u8(TCP_SYN)),
]
/** Matches the packets above so many in a second, after a burst. */
const moreThan = (perSecond: number, burst: number) =>
  expression(
    'limit',
    attribute(1, be64(perSecond)),
    attribute(2, be64(1)),
    attribute(3, be32(burst)),
    attribute(4, be32(LIMIT_PACKETS)),
    attribute(5, be32(LIMIT_INVERTED)),
  )
const LOOPBACK_6 = Uint8Array.of(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)
/** Reads the first bytes of an IPv4 packet's destination, or all of an IPv6 packet's. */
const to4 = (bytes: Uint8Array) => [
  ...version(NFPROTO_IPV4),
  payload(NETWORK_HEADER, 16, bytes.byteLength),
  equals(bytes),
]
const to6 = (bytes: Uint8Array) => [...version(NFPROTO_IPV6), payload(NETWORK_HEADER, 24, 16), equals(bytes)]

/** 127.0.0.0/8 and ::1 come first, then the sandbox's own addresses. */
const loopback = [to4(u8(127)), to6(LOOPBACK_6)]
const own = [to4(OWN_ADDRESS), to6(OWN_ADDRESS_6)]
const staysInside = [...loopback, ...own].map(match => [...match, accept])

const untracked = [expression('notrack'), accept]
const fromLoopback = [
  [...version(NFPROTO_IPV4), payload(NETWORK_HEADER, 12, 1), equals(u8(127))],
  [...version(NFPROTO_IPV6), payload(NETWORK_HEADER, 8, 16), equals(LOOPBACK_6)],
]

/**
 * The kernel remembers the connections that it redirects, and what is said back in them: from these ports, to an address of the
 * sandbox's own. It remembers nothing else: there would be room for so many connections in two minutes, each would take memory of the
 * machine, and a third of the throughput inside was lost. So nothing leaves from a loopback address, as on any machine.
 */
const rawRules = [
  ...loopback.map(match => [...match, ...untracked]),
  ...own.flatMap(match => [
    [...match, ...transport(TCP), ...fromPort(DIRECT_PORT), accept],
    ...[TCP, UDP].map(protocol => [...match, ...transport(protocol), ...fromPort(NAMES_PORT), accept]),
    ...[ICMP, ICMP_6].map(protocol => [...match, ...transport(protocol), accept]),
    [...match, ...untracked],
  ]),
  ...fromLoopback.flatMap(match => [
    [...match, ...transport(TCP), reject(REJECT_TCP_RESET, 0)],
    [...match, reject(REJECT_ICMPX, ADMIN_PROHIBITED)],
  ]),
]

/**
 * What the kernel remembers of a sandbox takes memory of the machine, for two minutes after a connection has ended. So fewer than
 * 100,000 are remembered at a time. A program tries again by itself when the first packet of its connection is lost.
 */
const paceRules = [
  ...staysInside,
  [...transport(TCP), ...begins, moreThan(500, 2000), drop],
  [...transport(UDP), moreThan(1000, 2000), drop],
]

const natRules = [
  ...staysInside,
  [...transport(UDP), ...toPort(NAMES_PORT), ...redirectTo(NAMES_PORT)],
  [...transport(TCP), ...toPort(NAMES_PORT), ...redirectTo(NAMES_PORT)],
  [...transport(TCP), ...redirectTo(DIRECT_PORT)],
]

/** These rules come after the others, when redirected packets already go to the loopback. */
const filterRules = [
  ...staysInside,
  [...transport(TCP), reject(REJECT_TCP_RESET, 0)],
  [...transport(UDP), reject(REJECT_ICMPX, PORT_UNREACHABLE)],
  [reject(REJECT_ICMPX, ADMIN_PROHIBITED)],
]

const message = (what: string, type: number | undefined, flags: number, ...attributes: Uint8Array[]) => ({
  what,
  type: type ?? 0,
  flags: flags | NLM_F_ACK,
  body: Buffer.concat([Uint8Array.of(NFPROTO_INET, 0, 0, 0), ...attributes]),
})

const batch = (type: number): NetlinkMessage => ({
  what: 'nf_tables',
  type,
  flags: 0,
  body: Uint8Array.of(NFPROTO_UNSPEC, 0, ...be16(NFNL_SUBSYS_NFTABLES)),
})

interface Chain {
  name: string
  type: 'nat' | 'filter'
  priority: number
  rules: readonly (readonly Expression[])[]
}

const chain = ({ name, type, priority, rules }: Chain): NetlinkMessage[] => [
  message(
    `chains of the type ${type}`,
    NEWCHAIN,
    NLM_F_CREATE,
    attribute(1, text(TABLE)),
    attribute(3, text(name)),
    nested(4, attribute(1, be32(NF_INET_LOCAL_OUT)), attribute(2, be32(priority))),
    attribute(7, text(type)),
  ),
  ...rules.map(expressions =>
    message(
      `rules of the chain ${name}`,
      NEWRULE,
      NLM_F_CREATE | NLM_F_APPEND,
      attribute(1, text(TABLE)),
      attribute(2, text(name)),
      nested(4, ...expressions),
    ),
  ),
]

const table = (type: number | undefined, flags: number) => message('nf_tables', type, flags, attribute(1, text(TABLE)))

const raw = chain({ name: 'raw', type: 'filter', priority: PRIORITY_RAW, rules: rawRules })
const redirecting = [
  ...chain({ name: 'nat', type: 'nat', priority: PRIORITY_NAT, rules: natRules }),
  ...chain({ name: 'filter', type: 'filter', priority: PRIORITY_FILTER, rules: filterRules }),
]

const change = (...messages: readonly NetlinkMessage[]): readonly NetlinkMessage[] => [
  batch(BATCH_BEGIN),
  ...messages,
  batch(BATCH_END),
]

/**
 * One change of a network that has no rules: TCP to anywhere arrives at this sandbox's own loopback, and so do questions for names.
 * All else that would leave is refused at once. The kernel says EEXIST where rules of ours are.
 */
export const newRules = change(table(NEWTABLE, NLM_F_CREATE | NLM_F_EXCL), ...redirecting)

/**
 * Makes the same change in place of our own rules, which another version may have made. The kernel waits for readers of those, up to 15
 * ms in tests.
 */
export const rulesAnew = change(table(DELTABLE, 0), table(NEWTABLE, NLM_F_CREATE), ...redirecting)

/** Rules that may be added to either change. Not every kernel supports them, and all else works without them. */
export const untrackedRules = change(...raw)
export const paceOfConnections = change(
  ...chain({ name: 'pace', type: 'filter', priority: PRIORITY_PACE, rules: paceRules }),
)
