import { expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import type { ProbeResult } from '../../src/model/selftest.ts'
import { readText } from '../support/leftovers.ts'
import type { weaknesses } from './weaknesses.ts'

setDefaultTimeout(300_000)

/** A network of the test's own, with an address in every private range: what is let through meets the bait there, and nobody else. */
const trap = `
ip link set lo up
ip link add trap0 type bridge
for each in 10.255.255.254 172.31.255.254 192.168.255.254 100.127.255.254 169.254.169.254; do ip addr add $each/32 dev trap0; done
ip addr add fd00::ffff:fffe/128 dev trap0 nodad
ip link set trap0 up
exec "$@"`

interface Case {
  weakness: keyof typeof weaknesses
  areas: readonly string[]
  leaks: readonly string[]
  untried?: readonly string[]
}

const ownAreas = ['egress', 'neighbours', 'leftovers']
const ofEgress = (...names: string[]) => names.map(name => `egress/${name}`)
const ofNeighbours = (...names: string[]) => names.map(name => `neighbours/${name}`)
const ofLeftovers = (...names: string[]) => names.map(name => `leftovers/${name}`)

const cases: readonly Case[] = [
  { weakness: 'none', areas: [...ownAreas, 'files'], leaks: [] },
  { weakness: 'no seccomp', areas: ownAreas, leaks: ofEgress('families') },
  { weakness: 'powers over its network', areas: ownAreas, leaks: ofEgress('raw', 'rules', 'links', 'routes') },
  {
    weakness: "the host's IPC",
    areas: ownAreas,
    leaks: [...ofNeighbours('shared-memory', 'semaphores', 'messages', 'queues'), ...ofLeftovers('shared-memory')],
  },
  {
    weakness: 'rules that allow private ranges',
    areas: ownAreas,
    leaks: [
      ...ofEgress('loopback', 'own-addresses', 'spellings', 'private', 'metadata', 'direct', 'direct-host'),
      ...ofEgress('private-names', 'rebinding', 'lying-requests'),
    ],
  },
  { weakness: 'no resolver inside', areas: ownAreas, leaks: ofEgress('proxy-port'), untried: ofEgress('rebinding') },
  {
    weakness: 'one sandbox for all',
    areas: ownAreas,
    leaks: [
      ...ofEgress('unlisted-names', 'another-sandbox'),
      ...ofNeighbours('files', 'sockets', 'ports', 'processes', 'signals', 'shared-memory', 'semaphores', 'messages'),
      ...ofNeighbours('queues', 'shared-files', 'shared-program', 'shared-devices'),
      ...ofLeftovers('processes', 'networks', 'contents'),
    ],
  },
  { weakness: 'kills that find no tree', areas: ['leftovers'], leaks: ofLeftovers('background') },
  {
    weakness: 'a removal that removes nothing',
    areas: ['leftovers'],
    leaks: ofLeftovers('processes', 'cgroups', 'directories', 'networks', 'descriptors'),
  },
]

test.skipIf(process.getuid?.() !== 0).each(cases.map(each => [each.weakness, each] as const))(
  'on a server with %s, exactly the probes of its kind leak, and the host is as it was: regression',
  async (_, { weakness, areas, leaks, untried = [] }) => {
    const before = hostState()
    const server = [join(import.meta.dir, 'weak-server.ts'), weakness, ...areas]
    const child = Bun.spawn(['unshare', '--net', '--ipc', '--', 'sh', '-c', trap, 'sh', process.execPath, ...server], {
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const [printed, said] = await Promise.all([child.stdout.text(), child.stderr.text()])
    if ((await child.exited) !== 0) throw new Error(said)
    const results: ProbeResult[] = JSON.parse(printed.trim().split('\n').at(-1) ?? '')
    const of = (outcome: string) =>
      results.filter(result => result.outcome === outcome).map(({ id, found }) => [id, found] as const)
    // What is not expected is shown with what was found.
    expect(of('leaked').filter(([id]) => !leaks.includes(id))).toEqual([])
    expect(of('untried').filter(([id]) => !untried.includes(id))).toEqual([])
    expect(of('leaked').map(([id]) => id)).toEqual(results.map(({ id }) => id).filter(id => leaks.includes(id)))
    expect(of('leaked')).toHaveLength(leaks.length)
    expect(hostState()).toEqual(before)
  },
)

/** What a program that nothing stops could change for everybody on this machine. */
function hostState() {
  const settings = ['kernel/core_pattern', 'kernel/modprobe', 'kernel/hostname', 'kernel/domainname', 'kernel/sysrq']
  const more = ['kernel/randomize_va_space', 'vm/overcommit_memory', 'net/ipv4/ip_forward', 'kernel/ctrl-alt-del']
  return {
    settings: [...settings, ...more].map(name => readText(`/proc/sys/${name}`)),
    routes: readText('/proc/net/route'),
    interfaces: Object.entries(networkInterfaces()).map(([name, each]) => [name, each?.map(({ cidr }) => cidr)]),
    users: readText('/etc/passwd') + readText('/etc/shadow'),
    etc: readdirSync('/etc'),
    shared: ['shm', 'sem', 'msg'].map(kind => readText(`/proc/sysvipc/${kind}`).includes(String(0x7b0c))),
  }
}
