import { OWN_ADDRESS, OWN_ADDRESS_6 } from './addresses.ts'
import { attribute, le32, type NetlinkMessage, NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE } from './netlink.ts'

const [RTM_NEWLINK, RTM_NEWADDR, RTM_NEWROUTE] = [16, 20, 24]
const [AF_UNSPEC, AF_INET, AF_INET6] = [0, 2, 10]
/** Every network has this loopback interface. */
const LOOPBACK = 1
const IFF_UP = 1
const [IFA_ADDRESS, IFA_LOCAL] = [1, 2]
const IFA_F_NODAD = 2
const [RTA_OIF, RTA_PREFSRC] = [4, 7]
const RT_TABLE_MAIN = 254
const RTPROT_BOOT = 3
const [RT_SCOPE_UNIVERSE, RT_SCOPE_LINK] = [0, 253]
const RTN_UNICAST = 1

const SET = NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE

/** Brings the loopback interface up. */
export const loopbackUp: NetlinkMessage = {
  what: 'the loopback interface',
  type: RTM_NEWLINK,
  flags: NLM_F_ACK,
  // The message has the family, padding, a type, a number, the flags, and a mask of the flags to change.
  body: Buffer.concat([Uint8Array.of(AF_UNSPEC, 0, 0, 0), le32(LOOPBACK), le32(IFF_UP), le32(IFF_UP)]),
}

/** Adds an address of the sandbox's own, and a route to everywhere that ends at its loopback interface. */
const way = (family: number, address: Uint8Array, version: string): NetlinkMessage[] => [
  {
    what: `an ${version} address`,
    type: RTM_NEWADDR,
    flags: SET,
    body: Buffer.concat([
      Uint8Array.of(family, address.byteLength * 8, IFA_F_NODAD, RT_SCOPE_UNIVERSE),
      le32(LOOPBACK),
      attribute(IFA_LOCAL, address),
      attribute(IFA_ADDRESS, address),
    ]),
  },
  {
    what: `an ${version} route`,
    type: RTM_NEWROUTE,
    flags: SET,
    body: Buffer.concat([
      Uint8Array.of(family, 0, 0, 0, RT_TABLE_MAIN, RTPROT_BOOT, RT_SCOPE_LINK, RTN_UNICAST),
      le32(0),
      attribute(RTA_OIF, le32(LOOPBACK)),
      attribute(RTA_PREFSRC, address),
    ]),
  },
]

/** In gVisor's stack all addresses of a loopback's networks are its own: these two networks have every address of IPv4. */
export const everywhereIsLoopback: readonly NetlinkMessage[] = [Uint8Array.of(100, 64, 0, 1), OWN_ADDRESS].map(
  address => ({
    what: 'an IPv4 network',
    type: RTM_NEWADDR,
    flags: NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL,
    body: Buffer.concat([
      Uint8Array.of(AF_INET, 1, 0, RT_SCOPE_UNIVERSE),
      le32(LOOPBACK),
      attribute(IFA_LOCAL, address),
      attribute(IFA_ADDRESS, address),
    ]),
  }),
)

export const wayOf4 = way(AF_INET, OWN_ADDRESS, 'IPv4')
export const wayOf6 = way(AF_INET6, OWN_ADDRESS_6, 'IPv6')
