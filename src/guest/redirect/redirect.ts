import { exchange, type NetlinkRefusal, type NetlinkSocket } from './netlink.ts'
import { loopbackUp, wayOf4, wayOf6 } from './routes.ts'
import { newRules, paceOfConnections, rulesAnew, untrackedRules } from './rules.ts'

/**
 * Has what programs in a network connect to arrive at its own loopback, by the kernel's own means. It may be done again at any
 * time: the rules are changed as one. Throws an error that says what the kernel lacks; the network is as it was then.
 */
export function redirectNetwork(sockets: { route: NetlinkSocket; netfilter: NetlinkSocket }): void {
  // The rules come first: without them, a route to everywhere would swallow the connections.
  const refusals = exchange(sockets.netfilter, newRules)
  const areThere = refusals.some(({ code }) => code === 'EEXIST')
  assertTaken(areThere ? exchange(sockets.netfilter, rulesAnew) : refusals)
  exchange(sockets.netfilter, untrackedRules)
  exchange(sockets.netfilter, paceOfConnections)
  assertTaken(exchange(sockets.route, [loopbackUp]))
  // A network may have no IPv6. Then none of its connections leaves, as before.
  for (const step of wayOf6) if (exchange(sockets.route, [step]).length > 0) break
  for (const step of wayOf4) assertTaken(exchange(sockets.route, [step]))
}

function assertTaken([refusal]: readonly NetlinkRefusal[]): void {
  if (!refusal) return
  const { what, code } = refusal
  const isForbidden = code === 'EPERM' || code === 'EACCES'
  throw new Error(
    isForbidden ? `the server may not change networks (${what}: ${code})` : `Linux has no ${what}: ${code}`,
  )
}
