import { close } from 'node:fs'
import { DIRECT_PORT, NETLINK_NETFILTER, NETLINK_ROUTE } from '../redirect/addresses.ts'
import { isOwnAddress } from '../redirect/original-destination.ts'
import { destinationOf, openNetlink } from '../redirect/sockets.ts'
import { listen } from '../wire/connection.ts'
import { GuestError } from '../wire/requests.ts'
import type { ProxyGate } from './proxy.ts'

/** Takes the connections that programs make to any address, which the kernel redirects to this guest. */
export interface DirectGate {
  /**
   * Listens where connections are redirected to. Throws when somebody has the port, and when nothing is redirected. A second call
   * changes nothing.
   */
  listen(): void
  /** Descriptors of sockets to the kernel, for a server that may change this network. They close with `close`. */
  lend(): { route?: number; netfilter?: number; close(): void }
}

/** Makes the gate, which does not listen yet. `trouble` says why nothing is redirected here. */
export function createDirectGate(gate: ProxyGate, trouble?: string): DirectGate {
  let isListening = false

  const listenAt = (hostname: string, version: 4 | 6) =>
    listen({ hostname, port: DIRECT_PORT }, (connection, descriptor) => {
      const destination = destinationOf(descriptor, version)
      // A program has connected to this port itself: it would be led back here without end.
      if (!destination || isOwnAddress(destination.address)) connection.reset()
      else gate.take(connection, { op: 'direct', ...destination })
    })

  return {
    listen() {
      if (isListening) return
      if (trouble !== undefined) throw new GuestError('conflict', trouble)
      try {
        listenAt('127.0.0.1', 4)
      } catch {
        throw new GuestError('conflict', `Somebody inside has the port ${DIRECT_PORT}.`)
      }
      isListening = true
      try {
        listenAt('::1', 6)
      } catch {
        // Without IPv6 in this network, no connection leaves by it.
      }
    },
    lend() {
      const lent = { route: openNetlink(NETLINK_ROUTE), netfilter: openNetlink(NETLINK_NETFILTER) }
      const { route, netfilter } = lent
      return {
        ...(route !== undefined && { route }),
        ...(netfilter !== undefined && { netfilter }),
        close() {
          // The kernel may wait in this call until replaced rules are gone.
          for (const number of Object.values(lent)) if (number !== undefined) close(number, () => {})
        },
      }
    },
  }
}
