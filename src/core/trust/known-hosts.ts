import { parseRule } from '../../egress/rules.ts'
import { type BoundSecret, SSH_PORT } from '../../egress/secrets/binding.ts'

/** OpenSSH reads this file in addition to the administrator's and the user's own. */
export const KNOWN_HOSTS_FILE = '/etc/ssh/ssh_known_hosts2'

/** How many ports of a range are written out. */
const MAX_PORTS = 20

/** The host keys of the bindings in OpenSSH's format; empty when there are none. */
export function knownHostsOf(bound: readonly BoundSecret[]): string {
  const lines = bound.flatMap(({ as, hosts }) =>
    'ssh' in as ? (as.ssh.hostKeys ?? []).map(key => `${hosts.flatMap(toPatterns).join(',')} ${key}\n`) : [],
  )
  return [...new Set(lines)].join('')
}

function toPatterns(host: string): string[] {
  const { domain, ports: { from, to } = { from: SSH_PORT, to: SSH_PORT } } = parseRule(host)
  if (!domain) return []
  const name = `${domain.isWildcard ? '*.' : ''}${domain.name}`
  const ports = Array.from({ length: Math.min(MAX_PORTS, to - from + 1) }, (_, index) => from + index)
  return ports.map(port => (port === SSH_PORT ? name : `[${name}]:${port}`))
}
