import type { OnProxy } from '../../../src/guest/host/outlets.ts'
import { PROXY_HOST, PROXY_PORT } from '../../../src/guest/wire/proxy-variables.ts'
import { listenInside } from '../host/network-namespace.ts'
import { acceptFrom } from './accept.ts'
import { openNetworkOf } from './jail-network.ts'

/**
 * Listens at the proxy's address inside a jail that runs, from here: what a program says is then not carried through the guest.
 * Throws when Linux does not let this server, or somebody inside has the port. Closing it cuts its connections.
 */
export function listenForProxy(nsjail: number, onProxy: OnProxy): { close(): void } {
  const network = openNetworkOf(nsjail)
  try {
    const listening = listenInside(network, PROXY_HOST, PROXY_PORT)
    try {
      return acceptFrom(listening, onProxy, socket => void socket.destroy())
    } catch (error) {
      listening.close()
      throw error
    }
  } finally {
    network.close()
  }
}
