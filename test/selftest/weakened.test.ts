import { expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import type { ProbeResult } from '../../src/model/selftest.ts'
import { readText } from '../support/leftovers.ts'
import { expectedLeaks } from './expected-leaks.ts'

setDefaultTimeout(300_000)

/** A network of the test's own, with an address in every private range: what is let through meets the bait there, and nobody else. */
const trap = `
ip link set lo up
ip link add trap0 type bridge
for each in 10.255.255.254 172.31.255.254 192.168.255.254 100.127.255.254 169.254.169.254; do ip addr add $each/32 dev trap0; done
ip addr add fd00::ffff:fffe/128 dev trap0 nodad
ip link set trap0 up
echo 0 2147483647 >/proc/sys/net/ipv4/ping_group_range
exec "$@"`

test.skipIf(process.getuid?.() !== 0).each(expectedLeaks.map(each => [each.weakness, each] as const))(
  'on a server with %s, exactly the probes of its kind leak, and the host is as it was: regression',
  async (_, { weakness, probes, leaks, mayLeak = [], untried = [] }) => {
    const before = hostState()
    const server = [join(import.meta.dir, 'weak-server.ts'), weakness, ...probes]
    const child = Bun.spawn(['unshare', '--net', '--ipc', '--', 'sh', '-c', trap, 'sh', process.execPath, ...server], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const [printed, said] = await Promise.all([child.stdout.text(), child.stderr.text()])
    if ((await child.exited) !== 0) throw new Error(said)
    const results: ProbeResult[] = JSON.parse(printed.trim().split('\n').at(-1) ?? '')
    const of = (outcome: string) =>
      results.filter(result => result.outcome === outcome).map(({ id, found }) => [id, found] as const)
    // What is not expected is shown with what was found.
    expect(of('leaked').filter(([id]) => ![...leaks, ...mayLeak].includes(id))).toEqual([])
    expect(of('untried').filter(([id]) => !untried.includes(id))).toEqual([])
    const leaked = of('leaked').map(([id]) => id)
    expect(leaks.filter(id => !leaked.includes(id))).toEqual([])
    expect(hostState()).toEqual(before)
  },
)

/** What a program that nothing stops could change for everybody on this machine. */
function hostState() {
  const settings = ['kernel/core_pattern', 'kernel/modprobe', 'kernel/hostname', 'kernel/domainname', 'kernel/sysrq']
  const more = ['kernel/randomize_va_space', 'vm/overcommit_memory', 'net/ipv4/ip_forward', 'kernel/ctrl-alt-del']
  return {
    settings: [...settings, ...more].map(name => readText(`/proc/sys/${name}`)),
    routes: readText('/proc/net/route')
      .split('\n')
      .filter(line => !isOfEngine(line)),
    interfaces: Object.entries(networkInterfaces())
      .filter(([name]) => !isOfEngine(name))
      .map(([name, each]) => [name, each?.map(({ cidr }) => cidr)]),
    users: readText('/etc/passwd') + readText('/etc/shadow'),
    etc: readdirSync('/etc'),
    keys: readText('/proc/keys').includes('threadbox'),
    shared: ['shm', 'sem', 'msg'].map(kind => readText(`/proc/sysvipc/${kind}`).includes(String(0x7b0c))),
  }
}

/** Engines of containers, which may run beside this test, make and remove these interfaces. */
const isOfEngine = (line: string) => /^(?:docker|br-|veth)/.test(line)
