import { dlopen, FFIType, ptr, read } from 'bun:ffi'
import { constants } from 'node:os'
import { messageOf } from '../../errors.ts'
import { NETLINK_ROUTE } from '../redirect/addresses.ts'
import { IPT_SO_SET_REPLACE, legacyTable } from '../redirect/legacy-table.ts'
import { exchange } from '../redirect/netlink.ts'
import { everywhereIsLoopback } from '../redirect/routes.ts'
import { netlinkSocket, openNetlink } from '../redirect/sockets.ts'
import { CAP_NET_ADMIN, CAP_NET_RAW, hasNetworkPower } from './network-power.ts'

const [AF_INET, SOCK_RAW, IPPROTO_RAW, SOL_IP] = [2, 3, 255, 0]
const PR_CAPBSET_DROP = 24
const CAPABILITY_VERSION_3 = 0x20080522
const networkCapabilities = (1 << CAP_NET_ADMIN) | (1 << CAP_NET_RAW)

/**
 * Redirects connections in a container's network that is gVisor's own, and gives up the power over it, which its engine gave for this
 * alone. Gives the reason where nothing is redirected. Throws when the power is kept.
 */
export function takeOwnNetwork(): string | undefined {
  const trouble = redirectOwnStack()
  dropNetworkCapabilities()
  return trouble
}

/**
 * Redirects what programs connect to, in a network that is a stack of gVisor's own: it has nothing but its loopback, and knows no
 * nf_tables. Gives the reason where it cannot.
 */
function redirectOwnStack(): string | undefined {
  const { socket, setsockopt, close, __errno_location } = openLibc()
  const codeOf = () => {
    const location = __errno_location()
    const number = location ? read.i32(location) : 0
    return Object.entries(constants.errno).find(([, each]) => each === number)?.[0] ?? `errno ${number}`
  }
  const raw = socket(AF_INET, SOCK_RAW, IPPROTO_RAW)
  if (raw < 0) return 'gVisor redirects connections only with the argument --net-raw in the runtime of the engine'
  try {
    const table = legacyTable()
    // The rules come first: without them, a route to everywhere would swallow the connections.
    if (setsockopt(raw, SOL_IP, IPT_SO_SET_REPLACE, ptr(table), table.byteLength) !== 0)
      return `gVisor takes no rules for connections: ${codeOf()}`
    const route = openNetlink(NETLINK_ROUTE)
    if (route === undefined) return 'gVisor lets nobody change its network'
    const [refusal] = exchange(netlinkSocket(route), everywhereIsLoopback).filter(({ code }) => code !== 'EEXIST')
    close(route)
    return refusal && `gVisor takes no ${refusal.what}: ${refusal.code}`
  } catch (error) {
    return messageOf(error)
  } finally {
    close(raw)
  }
}

/** Gives up the power over the network, for this thread, which starts all commands, and what it starts. Throws when it still has it. */
function dropNetworkCapabilities(): void {
  const { capget, capset, prctl } = openLibc()
  for (const each of [CAP_NET_ADMIN, CAP_NET_RAW]) prctl(PR_CAPBSET_DROP, each, 0, 0, 0)
  const header = Uint32Array.of(CAPABILITY_VERSION_3, 0)
  // The effective, permitted and inheritable sets come first with their lower halves, then with their upper halves.
  const sets = new Uint32Array(6)
  if (capget(ptr(header), ptr(sets)) === 0)
    capset(ptr(header), ptr(sets.map((set, index) => (index < 3 ? set & ~networkCapabilities : set))))
  if (hasNetworkPower()) throw new Error('the guest cannot give up its power over the network')
}

function openLibc() {
  const { i32, u32, u64, pointer } = FFIType
  return dlopen('libc.so.6', {
    socket: { args: [i32, i32, i32], returns: i32 },
    setsockopt: { args: [i32, i32, i32, pointer, u32], returns: i32 },
    close: { args: [i32], returns: i32 },
    prctl: { args: [i32, u64, u64, u64, u64], returns: i32 },
    capget: { args: [pointer, pointer], returns: i32 },
    capset: { args: [pointer, pointer], returns: i32 },
    __errno_location: { args: [], returns: pointer },
  }).symbols
}
