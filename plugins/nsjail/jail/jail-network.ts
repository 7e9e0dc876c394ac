import { connect, type Socket } from 'node:net'
import type { Descriptor } from '../../../src/descriptor.ts'
import { connectInside, openNetwork } from '../host/network-namespace.ts'
import { findGuest } from './guest-descriptors.ts'

/** Opens the network of a jail that runs. Throws when it has ended, or Linux does not let this server. */
export function openNetworkOf(nsjail: number): Descriptor {
  const guest = findGuest(nsjail)
  const network = openNetwork(guest)
  // The guest may have ended before, and its pid may have become another process's.
  if (findGuest(nsjail) === guest) return network
  network.close()
  throw new Error('the guest has ended')
}

/** Connects from this process to a server on a jail's loopback. Undefined when it does not succeed at once, for whatever reason. */
export function connectToJail(nsjail: number, port: number): Socket | undefined {
  let network: Descriptor | undefined
  try {
    network = openNetworkOf(nsjail)
    const socket = connectInside(network, '127.0.0.1', port)
    // Bun takes the open socket; its types know only sockets with an address.
    return socket && connect(Object.assign({ port, allowHalfOpen: true }, { fd: socket.number }))
  } catch {
    return undefined
  } finally {
    network?.close()
  }
}
