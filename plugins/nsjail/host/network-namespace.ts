import { dlopen, FFIType, ptr } from 'bun:ffi'
import { fstatSync, openSync, statSync } from 'node:fs'
import { type Descriptor, ownDescriptor } from '../../../src/descriptor.ts'
import { checked } from './libc.ts'

const CLONE_NEWNET = 0x40000000
const AF_INET = 2
const AF_INET6 = 10
const AF_NETLINK = 16
const SOCK_STREAM = 1
const SOCK_RAW = 3
const SOCK_NONBLOCK = 0x800
const SOCK_CLOEXEC = 0x80000
const SOL_SOCKET = 1
const SO_REUSEADDR = 2
const F_DUPFD_CLOEXEC = 1030
const BACKLOG = 256
const POLLOUT = 4
const IPPROTO_IPV6 = 41
const IPV6_V6ONLY = 26

let opened: ReturnType<typeof openLibc> | undefined
const libc = () => (opened ??= openLibc())

function openLibc() {
  const { i32, u32, u64, pointer } = FFIType
  const { symbols } = dlopen('libc.so.6', {
    setns: { args: [i32, i32], returns: i32 },
    unshare: { args: [i32], returns: i32 },
    socket: { args: [i32, i32, i32], returns: i32 },
    setsockopt: { args: [i32, i32, i32, pointer, u32], returns: i32 },
    bind: { args: [i32, pointer, u32], returns: i32 },
    listen: { args: [i32, i32], returns: i32 },
    connect: { args: [i32, pointer, u32], returns: i32 },
    poll: { args: [pointer, u64, i32], returns: i32 },
    fcntl: { args: [i32, i32, i32], returns: i32 },
  })
  // This stays open as long as this process: it is the way back into the process's own network.
  return { ...symbols, own: openSync('/proc/self/ns/net', 'r') }
}

/** Opens the network namespace of a process. Throws when it has ended, or is in this process's own. */
export function openNetwork(pid: number): Descriptor {
  const namespace = ownDescriptor(openSync(`/proc/${pid}/ns/net`, 'r'))
  if (fstatSync(namespace.number).ino !== statSync('/proc/self/ns/net').ino) return namespace
  namespace.close()
  throw new Error('it has no network of its own')
}

/**
 * Listens at an address inside a network namespace. Its processes never have the socket, so they cannot make a call on it
 * wait. Throws EADDRINUSE when somebody has the port, and EPERM for a server that is not root.
 */
export function listenInside(network: Descriptor, host: string, port: number): Descriptor {
  const family = host === '::1' ? AF_INET6 : AF_INET
  const listening = openSocket(network, family, SOCK_STREAM)
  try {
    const { setsockopt, bind, listen } = libc()
    const set = (level: number, option: number) =>
      checked('setsockopt', setsockopt(listening.number, level, option, ptr(Int32Array.of(1)), 4))
    const address = addressOf(host, port)
    // Connections of a former server may still be ending at the port.
    set(SOL_SOCKET, SO_REUSEADDR)
    if (family === AF_INET6) set(IPPROTO_IPV6, IPV6_V6ONLY)
    checked(`bind ${host}:${port}`, bind(listening.number, ptr(address), address.byteLength))
    checked('listen', listen(listening.number, BACKLOG))
    return listening
  } catch (error) {
    listening.close()
    throw error
  }
}

/**
 * Connects to an IPv4 address inside a network namespace. Undefined when it does not succeed at once: on a loopback that is when
 * nothing listens, or too many others wait.
 */
export function connectInside(network: Descriptor, host: string, port: number): Descriptor | undefined {
  const socket = openSocket(network, AF_INET, SOCK_STREAM)
  const address = addressOf(host, port)
  const { connect, poll } = libc()
  // The socket does not block, so that `connect` only says that the connection has begun.
  connect(socket.number, ptr(address), address.byteLength)
  const state = new DataView(new ArrayBuffer(8))
  state.setInt32(0, socket.number, true)
  state.setInt16(4, POLLOUT, true)
  if (poll(ptr(state.buffer), 1, 0) === 1 && state.getInt16(6, true) === POLLOUT) return socket
  socket.close()
  return undefined
}

/** Returns an IPv4 address, or `::1`, in the kernel's form. */
const addressOf = (host: string, port: number): Uint8Array =>
  host === '::1'
    ? Uint8Array.of(AF_INET6, 0, port >> 8, port, ...Array<number>(19).fill(0), 1, 0, 0, 0, 0)
    : Uint8Array.of(AF_INET, 0, port >> 8, port, ...host.split('.').map(Number), 0, 0, 0, 0, 0, 0, 0, 0)

/** Opens a socket to the part of the kernel that a protocol names, inside a network namespace. */
export const openNetlink = (network: Descriptor, protocol: number): Descriptor =>
  openSocket(network, AF_NETLINK, SOCK_RAW, protocol)

/** Makes a network that nothing is in. It lives as long as the descriptor. Throws where Linux does not let this server. */
export function makeNetwork(): Descriptor {
  const { setns, unshare, own } = libc()
  checked('unshare', unshare(CLONE_NEWNET))
  // Nothing but this call runs while the thread is inside.
  const made = openSync('/proc/thread-self/ns/net', 'r')
  if (setns(own, CLONE_NEWNET) !== 0) process.abort()
  return ownDescriptor(made)
}

/** Returns a second descriptor for the same open socket. */
export const duplicate = (socket: Descriptor): number => checked('dup', libc().fcntl(socket.number, F_DUPFD_CLOEXEC, 0))

/** Makes a socket inside a namespace: it stays there, wherever its owner is. */
function openSocket(network: Descriptor, family: number, type: number, protocol = 0): Descriptor {
  const { setns, socket, own } = libc()
  checked('setns', setns(network.number, CLONE_NEWNET))
  // Nothing but this call runs while the thread is inside.
  const made = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol)
  // A server that stayed in a sandbox's network would listen and connect there.
  if (setns(own, CLONE_NEWNET) !== 0) process.abort()
  return ownDescriptor(checked('socket', made))
}
