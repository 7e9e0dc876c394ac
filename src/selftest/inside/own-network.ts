import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { askKernel, linkUnchanged, removeNoAddress, removeNoRoute, removeNoTable } from './netlink.ts'
import { createOwnAddressCheck } from './own-addresses.ts'
import type { Attempt, Programs } from './program.ts'
import {
  AF_INET,
  AF_INET6,
  AF_NETLINK,
  SOCK_DGRAM,
  SOCK_RAW,
  SOCK_SEQPACKET,
  SOCK_STREAM,
  sendTo,
  toSocketAddress,
  withSocket,
} from './sockets.ts'
import { syscall } from './syscall.ts'
import { takePorts } from './take-ports.ts'

const [IPPROTO_ICMP, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMPV6, IPPROTO_SCTP, IPPROTO_RAW] = [1, 6, 17, 58, 132, 255]
const [IPPROTO_DCCP, SOCK_DCCP] = [33, 6]

/** These codes mean that this kernel lacks the feature, so that nothing was tried. */
const missing = ['EPROTONOSUPPORT', 'EAFNOSUPPORT', 'ESOCKTNOSUPPORT', 'EINVAL']
/** These codes mean that no route leads to the address. */
const noWay = ['ENETUNREACH', 'EADDRNOTAVAIL', 'ECONNRESET', ...missing]

/** Sends an echo request to each address over the sockets that every user may open. */
function echo({ words, refused }: Attempt): void {
  const isOwn = createOwnAddressCheck()
  for (const address of words) {
    if (isOwn(address)) continue
    const { family, bytes } = toSocketAddress(address, 0)
    const is4 = family === AF_INET
    const message = Buffer.alloc(16)
    message[0] = is4 ? 8 : 128
    refused(
      `an echo request to ${address}`,
      () =>
        withSocket([family, SOCK_DGRAM, is4 ? IPPROTO_ICMP : IPPROTO_ICMPV6], socket => sendTo(socket, message, bytes)),
      noWay,
    )
  }
}

function raw({ refused }: Attempt): void {
  for (const family of [AF_INET, AF_INET6]) {
    for (const protocol of [IPPROTO_ICMP, IPPROTO_TCP, IPPROTO_UDP, IPPROTO_SCTP, IPPROTO_RAW]) {
      const what = `a raw socket of ${family === AF_INET ? 'IPv4' : 'IPv6'}, protocol ${protocol}`
      refused(what, () => withSocket([family, SOCK_RAW, protocol], () => {}), missing)
    }
  }
  const [AF_PACKET, ALL] = [17, 0x0300]
  refused('a socket for packets', () => withSocket([AF_PACKET, SOCK_RAW, ALL], () => {}), missing)
}

/** Connects over transports that few programs know. */
function transports({ words: [port = '', ...addresses], refused }: Attempt): void {
  const kinds = [
    ['SCTP', SOCK_STREAM, IPPROTO_SCTP],
    ['SCTP in messages', SOCK_SEQPACKET, IPPROTO_SCTP],
    ['DCCP', SOCK_DCCP, IPPROTO_DCCP],
  ] as const
  for (const address of addresses) {
    const { family, bytes } = toSocketAddress(address, Number(port))
    for (const [name, type, protocol] of kinds) {
      const connect = () =>
        withSocket([family, type, protocol], socket => syscall('connect', socket, bytes, bytes.byteLength))
      refused(`${name} to ${address}`, connect, noWay)
    }
  }
}

/** Socket families that network namespaces do not separate. */
function families({ refused }: Attempt): void {
  const kinds = [
    ['vsock', 40, SOCK_STREAM, 0],
    ['vsock with datagrams', 40, SOCK_DGRAM, 0],
    ["the kernel's ciphers", 38, SOCK_SEQPACKET, 0],
    ["the kernel's keys for IPsec", 15, SOCK_RAW, 2],
    ['XDP', 44, SOCK_RAW, 0],
    ['Bluetooth', 31, SOCK_RAW, 1],
    ['RDS', 21, SOCK_SEQPACKET, 0],
  ] as const
  for (const [name, family, type, protocol] of kinds) {
    refused(`a socket of ${name}`, () => withSocket([family, type, protocol], () => {}), missing)
  }
  // Every user may open an audit socket. Its multicast group carries what the kernel reports to the audit.
  const [NETLINK_AUDIT, READ_LOG] = [9, 1]
  const group = Buffer.alloc(12)
  group.writeUInt16LE(AF_NETLINK, 0)
  group.writeUInt32LE(READ_LOG, 8)
  refused(
    "what the kernel's audit says",
    () => withSocket([AF_NETLINK, SOCK_RAW, NETLINK_AUDIT], socket => syscall('bind', socket, group, group.byteLength)),
    [...missing, 'ECONNREFUSED'],
  )
}

function interfaces({ found }: Attempt): void {
  const names = interfaceNames().filter(name => !['all', 'default', 'lo'].includes(name))
  // The kernel puts fallback tunnels into every network namespace; none of them leads anywhere.
  const known = ['tunl0', 'gre0', 'gretap0', 'erspan0', 'ip_vti0', 'ip6_vti0', 'sit0', 'ip6tnl0', 'ip6gre0']
  for (const name of names) if (!known.includes(name)) found(`the sandbox has the interface ${name}`)
}

/** gVisor has no settings of interfaces. It lists them in one file, below two lines of headings. */
function interfaceNames(): string[] {
  const settings = '/proc/sys/net/ipv4/conf'
  if (existsSync(settings)) return readdirSync(settings)
  const lines = readFileSync('/proc/net/dev', 'utf8').trimEnd().split('\n').slice(2)
  return lines.map(line => line.slice(0, line.indexOf(':')).trim())
}

/** A call that is allowed changes nothing: what it names does not exist, or already has this value. */
function rules(attempt: Attempt): void {
  askKernel(attempt, 'a deletion of rules', removeNoTable())
}
function links(attempt: Attempt): void {
  askKernel(attempt, 'a change of the loopback interface', linkUnchanged())
  askKernel(attempt, 'a removal of an address', removeNoAddress())
}
function routes(attempt: Attempt): void {
  askKernel(attempt, 'a removal of a route', removeNoRoute())
}

/** The programs that root inside runs against its own network. */
export const ownNetwork: Programs = { echo, raw, transports, families, interfaces, rules, links, routes, takePorts }
