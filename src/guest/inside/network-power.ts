import { readFileSync } from 'node:fs'

export const [CAP_NET_ADMIN, CAP_NET_RAW] = [12, 13]
const networkCapabilities = (1 << CAP_NET_ADMIN) | (1 << CAP_NET_RAW)

/**
 * Says whether this thread, or programs that it starts, may have power over the network. Engines give that where gVisor's own network is
 * redirected.
 */
export const hasNetworkPower = (): boolean =>
  ['CapBnd', 'CapPrm', 'CapEff', 'CapInh'].some(set => (capabilities(set) & networkCapabilities) !== 0)

/** The lower half of a capability set of this thread. */
function capabilities(set: string): number {
  const line = readFileSync('/proc/thread-self/status', 'latin1')
    .split('\n')
    .find(each => each.startsWith(`${set}:`))
  if (!line) throw new Error('this kernel does not say what the guest may do')
  return Number.parseInt(line.slice(-8), 16) | 0
}
