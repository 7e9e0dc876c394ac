import type { Attempt } from './program.ts'
import { AF_INET, AF_NETLINK, receive, SOCK_RAW, sendTo, withSocket } from './sockets.ts'
import { CallError, nameOfErrno } from './syscall.ts'

/** A netlink message to the kernel, and the netlink protocol that handles it. */
interface Question {
  protocol: number
  bytes: Buffer
}

const [NETLINK_ROUTE, NETLINK_NETFILTER] = [0, 12]
const [NLM_F_REQUEST, NLM_F_ACK] = [1, 4]
const NLMSG_ERROR = 2
const HEAD_BYTES = 16
const [RTM_NEWLINK, RTM_DELADDR, RTM_DELROUTE] = [16, 21, 25]
const [BATCH_BEGIN, BATCH_END, DELETE_TABLE] = [0x10, 0x11, 0x0a02]
const NFPROTO_INET = 1
const NFNL_SUBSYS_NFTABLES = 10
/** An address from a range for documentation, in a routing table that nobody uses. */
const [NOWHERE, NO_TABLE] = [[203, 0, 113, 77], 199]

/** Deletes a table of rules that does not exist. */
export function removeNoTable(): Question {
  const name = attribute(1, Buffer.from('threadbox-selftest-no-such-table\0'))
  const batch = Buffer.from([0, 0, 0, NFNL_SUBSYS_NFTABLES])
  return {
    protocol: NETLINK_NETFILTER,
    bytes: Buffer.concat([
      message(BATCH_BEGIN, batch, NLM_F_REQUEST),
      message(DELETE_TABLE, Buffer.concat([Buffer.from([NFPROTO_INET, 0, 0, 0]), name]), NLM_F_REQUEST | NLM_F_ACK),
      message(BATCH_END, batch, NLM_F_REQUEST),
    ]),
  }
}

/** Changes no flag of the first interface, which is `lo`. */
export function linkUnchanged(): Question {
  const link = Buffer.alloc(16)
  link.writeInt32LE(1, 4)
  return { protocol: NETLINK_ROUTE, bytes: message(RTM_NEWLINK, link) }
}

/** Removes an address that `lo` does not have. */
export function removeNoAddress(): Question {
  const head = Buffer.from([AF_INET, 32, 0, 0, 1, 0, 0, 0])
  return {
    protocol: NETLINK_ROUTE,
    bytes: message(RTM_DELADDR, Buffer.concat([head, attribute(2, Buffer.from(NOWHERE))])),
  }
}

/** Removes a route that does not exist. */
export function removeNoRoute(): Question {
  const head = Buffer.from([AF_INET, 32, 0, 0, NO_TABLE, 0, 0, 0, 0, 0, 0, 0])
  return {
    protocol: NETLINK_ROUTE,
    bytes: message(RTM_DELROUTE, Buffer.concat([head, attribute(1, Buffer.from(NOWHERE))])),
  }
}

function attribute(type: number, value: Buffer): Buffer {
  const head = Buffer.alloc(4)
  head.writeUInt16LE(4 + value.byteLength, 0)
  head.writeUInt16LE(type, 2)
  return padded(Buffer.concat([head, value]))
}

function message(type: number, body: Buffer, flags = NLM_F_REQUEST | NLM_F_ACK): Buffer {
  const head = Buffer.alloc(HEAD_BYTES)
  head.writeUInt32LE(HEAD_BYTES + body.byteLength, 0)
  head.writeUInt16LE(type, 4)
  head.writeUInt16LE(flags, 6)
  return padded(Buffer.concat([head, body]))
}

const padded = (bytes: Buffer) => Buffer.concat([bytes], Math.ceil(bytes.byteLength / 4) * 4)

/** Asks the kernel for a change. It must answer that the caller lacks the power: any other answer means that it handled the message. */
export function askKernel({ refused }: Attempt, what: string, { protocol, bytes }: Question): void {
  const ask = () =>
    withSocket([AF_NETLINK, SOCK_RAW, protocol], socket => {
      const kernel = Buffer.alloc(12)
      kernel.writeUInt16LE(AF_NETLINK, 0)
      sendTo(socket, bytes, kernel)
      const answer = receive(socket)
      if (answer.byteLength < HEAD_BYTES + 4 || answer.readUInt16LE(4) !== NLMSG_ERROR) return
      const errno = -answer.readInt32LE(HEAD_BYTES)
      if (errno !== 0) throw new CallError('sendto', nameOfErrno(errno))
    })
  refused(what, ask, ['EPROTONOSUPPORT', 'EAFNOSUPPORT'])
}
