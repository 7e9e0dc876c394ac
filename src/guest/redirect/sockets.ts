import { dlopen, FFIType, ptr, read } from 'bun:ffi'
import { constants } from 'node:os'
import type { NetlinkSocket } from './netlink.ts'
import { originalDestination, readSocketAddress } from './original-destination.ts'

const [AF_NETLINK, SOCK_RAW, SOCK_CLOEXEC, SOCK_NONBLOCK] = [16, 3, 0x80000, 0x800]
const [SOL_SOCKET, SO_DOMAIN] = [1, 39]
const MSG_DONTWAIT = 0x40
/** The kernel's answers to our messages are shorter than this. */
const ANSWER_BYTES = 16 * 1024

let opened: ReturnType<typeof openLibc> | undefined
/** libc is opened at the first use: most processes that load this file redirect nothing. */
const libc = () => (opened ??= openLibc())

function openLibc() {
  const { i32, i64, u32, u64, pointer } = FFIType
  return dlopen('libc.so.6', {
    socket: { args: [i32, i32, i32], returns: i32 },
    getsockopt: { args: [i32, i32, i32, pointer, pointer], returns: i32 },
    sendto: { args: [i32, pointer, u64, i32, pointer, u32], returns: i64 },
    recv: { args: [i32, pointer, u64, i32], returns: i64 },
    __errno_location: { args: [], returns: pointer },
  }).symbols
}

/** Opens a socket to a part of the kernel, in this process's own network. Undefined where the kernel has no such part. */
export function openNetlink(protocol: number): number | undefined {
  const number = libc().socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol)
  return number >= 0 ? number : undefined
}

/**
 * Speaks over a netlink socket, also one that another process has lent: a message with an address is judged by what this process
 * may do alone, and an ordinary user may do all in the user namespaces that it has made. Throws when it is no netlink socket.
 */
export function netlinkSocket(descriptor: number): NetlinkSocket {
  const { getsockopt, sendto, recv, __errno_location } = libc()
  const domain = new Int32Array(1)
  getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, ptr(domain), ptr(Int32Array.of(4)))
  if (domain[0] !== AF_NETLINK) throw new Error('this is no socket to the kernel')
  const toKernel = new Uint8Array(12)
  toKernel[0] = AF_NETLINK
  const answer = new Uint8Array(ANSWER_BYTES)
  return {
    send(bytes) {
      const sent = sendto(descriptor, ptr(bytes), bytes.byteLength, MSG_DONTWAIT, ptr(toKernel), toKernel.byteLength)
      if (sent >= 0) return
      const location = __errno_location()
      const number = location ? read.i32(location) : 0
      const code = Object.entries(constants.errno).find(([, each]) => each === number)?.[0]
      throw new Error(`the kernel takes no message about its network: ${code ?? `errno ${number}`}`)
    },
    receive() {
      const length = Number(recv(descriptor, ptr(answer), answer.byteLength, MSG_DONTWAIT))
      return length > 0 ? answer.slice(0, length) : undefined
    },
  }
}

/** Returns the address that a connection was made to before the kernel redirected it here. Undefined when it was not redirected. */
export function destinationOf(descriptor: number, version: 4 | 6): { address: string; port: number } | undefined {
  const { level, option, bytes } = originalDestination[version]
  const address = new Uint8Array(bytes)
  const length = Int32Array.of(bytes)
  const result = libc().getsockopt(descriptor, level, option, ptr(address), ptr(length))
  return result === 0 && length[0] === bytes ? readSocketAddress(version, address) : undefined
}
