import { writeFileSync } from 'node:fs'
import { messageOf } from '../../errors.ts'
import { NETLINK_NETFILTER, NETLINK_ROUTE, REDIRECTED } from '../redirect/addresses.ts'
import { redirectNetwork } from '../redirect/redirect.ts'
import { netlinkSocket, openNetlink } from '../redirect/sockets.ts'

/**
 * Redirects the connections of programs in this process's network, where it may. Prints that it did so, or why it could not. Returns an
 * exit code.
 */
export function redirectOwnNetwork(): number {
  try {
    const [netfilter, route] = [openNetlink(NETLINK_NETFILTER), openNetlink(NETLINK_ROUTE)]
    if (netfilter === undefined || route === undefined) throw new Error('Linux has no nf_tables')
    adjustSettings()
    redirectNetwork({ netfilter: netlinkSocket(netfilter), route: netlinkSocket(route) })
    console.log(REDIRECTED)
    return 0
  } catch (error) {
    console.error(messageOf(error))
    return 1
  }
}

const settings = {
  // Some engines switch IPv6 off in networks that lead nowhere.
  'ipv6/conf/all/disable_ipv6': '0',
  // Nobody may open ICMP sockets: IPv6 packets from those would be swallowed.
  'ipv4/ping_group_range': '1 0',
}

/** These settings are those of jails. Where this process may not change them, the affected connections lead nowhere. */
function adjustSettings(): void {
  for (const [name, value] of Object.entries(settings)) {
    try {
      writeFileSync(`/proc/sys/net/${name}`, value)
    } catch {
      // The setting does not exist, or this process may not change it.
    }
  }
}
