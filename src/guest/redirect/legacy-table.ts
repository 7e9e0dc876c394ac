import { DIRECT_PORT, NAMES_PORT } from './addresses.ts'
import { be16, le32 } from './netlink.ts'

/**
 * The table `nat` for connections of IPv4, as `setsockopt` took it before there was nf_tables, which gVisor's own stack does not have: TCP and
 * questions for names arrive at this network's loopback. Sizes are those of a machine with 64 bits.
 */

export const IPT_SO_SET_REPLACE = 64

const [PREROUTING, INPUT, FORWARD, OUTPUT, POSTROUTING] = [0, 1, 2, 3, 4]
const [TCP, UDP] = [6, 17]
const ENTRY_BYTES = 112
const NAME_BYTES = 29
const NF_ACCEPT = le32(-2)
const NF_NAT_RANGE_PROTO_SPECIFIED = 2
/** The flag means that the destination is not the named one. */
const IPT_INV_DSTIP = 0x10

const name = (text: string, length: number): Uint8Array => {
  const bytes = new Uint8Array(length)
  bytes.set(Buffer.from(text))
  return bytes
}

/** What a rule does, or asks beside addresses: its size, its name, its revision and its own bytes, at a multiple of eight. */
function extension(text: string, own: Uint8Array): Uint8Array {
  const length = (2 + NAME_BYTES + 1 + own.byteLength + 7) & ~7
  const bytes = new Uint8Array(length)
  bytes.set([length & 0xff, length >> 8])
  bytes.set(name(text, NAME_BYTES), 2)
  bytes.set(own, 2 + NAME_BYTES + 1)
  return bytes
}

const standard = extension('', NF_ACCEPT)
const redirectTo = (port: number): Uint8Array =>
  extension(
    'REDIRECT',
    Buffer.concat([le32(1), le32(NF_NAT_RANGE_PROTO_SPECIFIED), le32(0), le32(0), be16(port), be16(port)]),
  )
/** The rule matches any source port and one destination port. */
const ports = (port: number): number[] => [0, 0, 0xff, 0xff, port, port >> 8, port, port >> 8]
const udpTo = (port: number): Uint8Array => extension('udp', Uint8Array.of(...ports(port), 0, 0))
const tcpTo = (port: number): Uint8Array => extension('tcp', Uint8Array.of(...ports(port), 0, 0, 0, 0))

interface Rule {
  protocol?: number
  match?: Uint8Array
  target: Uint8Array
}

function entry({ protocol = 0, match = new Uint8Array(), target }: Rule): Uint8Array {
  const bytes = Buffer.alloc(ENTRY_BYTES + match.byteLength + target.byteLength)
  if (protocol === TCP) {
    // The rule covers all addresses but this network's own, 127.0.0.0/8.
    bytes.set([127, 0, 0, 0], 4)
    bytes.set([255, 0, 0, 0], 12)
    bytes[83] = IPT_INV_DSTIP
  }
  bytes.writeUInt16LE(protocol, 80)
  bytes.writeUInt16LE(ENTRY_BYTES + match.byteLength, 88)
  bytes.writeUInt16LE(bytes.byteLength, 90)
  bytes.set(match, ENTRY_BYTES)
  bytes.set(target, ENTRY_BYTES + match.byteLength)
  return bytes
}

const accept = entry({ target: standard })

/** The bytes of `struct ipt_replace`. */
export function legacyTable(): Uint8Array {
  const chains = [
    { hook: PREROUTING, rules: [] },
    { hook: INPUT, rules: [] },
    {
      hook: OUTPUT,
      rules: [
        entry({ protocol: UDP, match: udpTo(NAMES_PORT), target: redirectTo(NAMES_PORT) }),
        entry({ protocol: TCP, match: tcpTo(NAMES_PORT), target: redirectTo(NAMES_PORT) }),
        entry({ protocol: TCP, target: redirectTo(DIRECT_PORT) }),
      ],
    },
    { hook: POSTROUTING, rules: [] },
  ]
  const [begins, policies] = [new Uint32Array(5), new Uint32Array(5)]
  const entries: Uint8Array[] = []
  let at = 0
  const add = (bytes: Uint8Array) => {
    entries.push(bytes)
    at += bytes.byteLength
  }
  for (const { hook, rules } of chains) {
    begins[hook] = at
    for (const rule of rules) add(rule)
    policies[hook] = at
    add(accept)
  }
  add(entry({ target: extension('ERROR', name('ERROR', 30)) }))
  const hooks = [PREROUTING, INPUT, OUTPUT, POSTROUTING].reduce((mask, hook) => mask | (1 << hook), 0)
  begins[FORWARD] = 0
  return Buffer.concat([
    ...[name('nat', 32), le32(hooks), le32(entries.length), le32(at)],
    ...[new Uint8Array(begins.buffer), new Uint8Array(policies.buffer)],
    // The counters of the replaced table are not asked for, so their address is null.
    ...[le32(0), new Uint8Array(8)],
    ...entries,
  ])
}
