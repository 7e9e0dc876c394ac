import { lookup } from 'node:dns/promises'
import { findDenial } from '../../src/egress/policy.ts'
import { parseAddress } from '../../src/read/addresses.ts'

/** As a sandbox on the host's base has them: the machine's programs, and nothing of its user's. */
const environment = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', HOME: '/nonexistent' }

/** What a client says; nothing where there is none. */
function ask(...command: string[]): string {
  try {
    return Bun.spawnSync(command, { env: environment, stderr: 'ignore' }).stdout.toString().trim()
  } catch {
    return ''
  }
}

const hostOf = (url: string) => URL.parse(url)?.host ?? ''
const pip = 'from pip._internal.models.index import PyPI as it; print(it.netloc, it.file_storage_domain)'
const [index = '', storage = ''] = ask('python3', '-c', pip).split(' ')

/** Hosts of the registries that the clients of this machine use. */
export const registries = {
  npm: hostOf(ask('npm', 'config', 'get', 'registry')),
  pip: { index, storage },
  apt: ask('apt-get', 'indextargets', '--format', '$(SITE)').split('\n')[0] ?? '',
}

const hosts = [registries.npm, index, storage, hostOf(registries.apt)]
const found = await Promise.all(hosts.map(host => lookup(host || 'none.invalid', { all: true }).catch(() => [])))

export const isOnline = found.every(addresses => addresses.length > 0)

/** Addresses of theirs that are not public here, because a mirror stands in for them: the operator must name these. */
export const mirrors = [
  ...new Set(
    found.flat().flatMap(({ address: name }) => {
      const address = parseAddress(name)
      const policy = { mode: 'public', layers: [], ceiling: [] } as const
      return address && findDenial(policy, { name, port: 443, address }, address) !== undefined ? [name] : []
    }),
  ),
]

/** The flag of a server whose sandboxes use them. */
export const mirrorFlags = mirrors.length > 0 ? ['--network-private', mirrors.join(',')] : []

/** What a sandbox is made with that uses them: rules name a mirror, where they are public there are none. */
export const mirrorRules = mirrors.length > 0 ? { networkAllowOut: ['0.0.0.0/0', '::/0'] } : {}
