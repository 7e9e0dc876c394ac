import { close } from 'node:fs'
import type { Socket } from 'node:net'
import type { Descriptor } from '../../../src/descriptor.ts'
import type { GuestConnection } from '../../../src/guest/host/connect.ts'
import type { OnDirect } from '../../../src/guest/host/outlets.ts'
import { DIRECT_PORT, NETLINK_NETFILTER, NETLINK_ROUTE } from '../../../src/guest/redirect/addresses.ts'
import { isOwnAddress } from '../../../src/guest/redirect/original-destination.ts'
import { redirectNetwork } from '../../../src/guest/redirect/redirect.ts'
import { destinationOf, netlinkSocket } from '../../../src/guest/redirect/sockets.ts'
import { isObject } from '../../../src/read/json.ts'
import { listenInside, openNetlink } from '../host/network-namespace.ts'
import { acceptFrom } from './accept.ts'
import { openNetworkOf } from './jail-network.ts'

/**
 * Has every TCP connection that programs make inside a jail that runs arrive here, wherever they make it to. Throws where Linux
 * does not let this server, or cannot. Closing it cuts the connections; what is made after that is refused inside.
 */
export function listenForDirect(nsjail: number, onDirect: OnDirect): { close(): void } {
  const network = openNetworkOf(nsjail)
  const listeners: { close(): void }[] = []
  const closeAll = () => {
    for (const listener of listeners) listener.close()
  }
  try {
    listeners.push(listenAt(network, '127.0.0.1', 4, onDirect))
    if (hasVersion6(network)) listeners.push(listenAt(network, '::1', 6, onDirect))
    redirect(network)
    return { close: closeAll }
  } catch (error) {
    closeAll()
    throw error
  } finally {
    network.close()
  }
}

function listenAt(network: Descriptor, host: string, version: 4 | 6, onDirect: OnDirect): { close(): void } {
  const listening = listenInside(network, host, DIRECT_PORT)
  try {
    const take = (socket: Socket, signal: AbortSignal) => {
      const number = numberOf(socket)
      const destination = number === undefined ? undefined : destinationOf(number, version)
      // The program has connected to this port itself, and its connection would come back here without end.
      if (!destination || isOwnAddress(destination.address)) socket.resetAndDestroy()
      else onDirect(socket, destination, signal)
    }
    return acceptFrom(listening, take, socket => void socket.resetAndDestroy())
  } catch (error) {
    listening.close()
    throw error
  }
}

/** Bun has the descriptor of an open socket in a field that Node has too. */
function numberOf(socket: Socket): number | undefined {
  const handle = '_handle' in socket ? socket._handle : undefined
  return isObject(handle) && typeof handle.fd === 'number' && handle.fd >= 0 ? handle.fd : undefined
}

function hasVersion6(network: Descriptor): boolean {
  try {
    listenInside(network, '::1', 0).close()
    return true
  } catch {
    return false
  }
}

/**
 * Has every TCP connection that programs make inside a jail arrive at its guest, which hands them on. It is the way of a server that
 * cannot make sockets inside: the guest lends some to it. Throws where Linux does not let this server, or cannot.
 */
export async function redirectToGuest(connection: GuestConnection): Promise<void> {
  const lent = await connection.listenForDirect()
  if (!lent) throw new Error('the server may not copy what the guest has open')
  try {
    redirectNetwork({ netfilter: netlinkSocket(lent.netfilter.number), route: netlinkSocket(lent.route.number) })
  } finally {
    lent.close()
  }
}

/** Throws as `listenForDirect` does. */
export function redirect(network: Descriptor): void {
  const opened: Descriptor[] = []
  const open = (protocol: number) => {
    const socket = openNetlink(network, protocol)
    opened.push(socket)
    return netlinkSocket(socket.number)
  }
  try {
    redirectNetwork({ netfilter: open(NETLINK_NETFILTER), route: open(NETLINK_ROUTE) })
  } finally {
    // Where rules were replaced, the kernel waits in this call, so it must not run on the event loop.
    for (const { number } of opened) close(number, () => {})
  }
}
