import type { weaknesses } from './weaknesses.ts'

interface ExpectedLeaks {
  weakness: keyof typeof weaknesses
  /** Areas, or ids of single probes. */
  probes: readonly string[]
  /** Exactly these ids leak. */
  leaks: readonly string[]
  /** It depends on the kernel and its settings, on devices, or on how busy the machine is, whether these leak too. */
  mayLeak?: readonly string[]
  /** These cannot be tried on such a server. */
  untried?: readonly string[]
}

const areas = ['egress', 'neighbours', 'leftovers']
const kernelAreas = ['system-calls', 'namespaces', 'mounts', 'guest']
const of =
  (area: string) =>
  (...names: string[]) =>
    names.map(name => `${area}/${name}`)
const [ofEgress, ofNeighbours, ofLeftovers, ofGuest] = [of('egress'), of('neighbours'), of('leftovers'), of('guest')]
const [ofCalls, ofNamespaces, ofMounts, ofLimits] = [of('system-calls'), of('namespaces'), of('mounts'), of('limits')]
const [ofProc, ofDevices] = [of('proc'), of('devices')]

const everyNamespace = ofNamespaces(
  ...['user', 'mount', 'network', 'processes', 'host-name', 'ipc', 'cgroup', 'clone3', 'join'],
)

/** What the selftest has to find on each weak server, and nothing else. */
export const expectedLeaks: readonly ExpectedLeaks[] = [
  { weakness: 'none', probes: [...areas, ...kernelAreas, 'proc', 'devices', 'limits', 'files'], leaks: [] },
  {
    weakness: 'no seccomp',
    probes: [...areas, ...kernelAreas],
    leaks: [
      ...ofEgress('families'),
      ...ofCalls('filter', 'keyrings', 'clocks', 'accounting', 'io-uring', 'file-handles', 'memory-placement'),
      ...ofCalls('personality', 'typing-on-terminals', 'vsock', 'kernel-crypto', 'rare-sockets', 'high-bits'),
      ...everyNamespace,
      ...ofMounts('file-system-contexts'),
      ...ofGuest('memory', 'mark'),
    ],
    mayLeak: ofCalls('bpf', 'perf-events', 'userfaultfd', 'kernel-log', 'audit-log', 'x32'),
  },
  {
    weakness: 'no seccomp, and the powers of mounts',
    probes: ['system-calls/capabilities', 'namespaces', 'mounts'],
    leaks: [
      ...ofCalls('capabilities'),
      ...everyNamespace,
      ...ofNamespaces('rename-host'),
      ...ofMounts('tmpfs', 'kernel', 'cgroup', 'devices', 'overlay', 'bind', 'remount', 'propagation', 'unmount'),
      ...ofMounts('pivot-root', 'file-system-contexts', 'open-tree', 'move', 'attributes'),
    ],
  },
  {
    weakness: 'the root of the machine inside',
    probes: ['proc', 'devices'],
    leaks: [...ofProc('started-programs', 'settings', 'memory-lists'), ...ofDevices('loops')],
    mayLeak: [
      ...ofProc('sysrq', 'kernel-lists', 'kernel-addresses'),
      ...ofDevices('disks', 'kernel-log', 'virtual-machines', 'fuse', 'tunnels', 'input', 'consoles'),
    ],
  },
  {
    weakness: "the host's network",
    probes: ['egress', 'neighbours', 'namespaces'],
    leaks: [
      ...ofNamespaces('own'),
      ...ofEgress('direct', 'direct-host', 'datagrams', 'echo', 'interfaces', 'proxy-port', 'host-sockets'),
      ...ofEgress('unlisted-names', 'another-sandbox'),
      ...ofNeighbours('sockets', 'ports'),
    ],
    untried: ofEgress('rebinding'),
  },
  {
    weakness: 'a mark that is not set',
    probes: ['guest', 'leftovers'],
    leaks: [...ofGuest('mark', 'race', 'kill-tree'), ...ofLeftovers('background')],
  },
  {
    weakness: 'limits that are not those that were asked for',
    probes: ['limits'],
    leaks: ofLimits('memory', 'shared-memory', 'processes', 'disk', 'engine-files', 'files', 'terminals'),
    mayLeak: ofLimits('cpu'),
  },
  { weakness: 'powers over its network', probes: areas, leaks: ofEgress('raw', 'rules', 'links', 'routes') },
  {
    weakness: "the host's IPC",
    probes: areas,
    leaks: [...ofNeighbours('shared-memory', 'semaphores', 'messages', 'queues'), ...ofLeftovers('shared-memory')],
  },
  {
    weakness: 'rules that allow private ranges',
    probes: areas,
    leaks: [
      ...ofEgress('loopback', 'own-addresses', 'spellings', 'private', 'metadata', 'direct', 'direct-host'),
      ...ofEgress('private-names', 'rebinding', 'lying-requests'),
    ],
  },
  { weakness: 'no resolver inside', probes: areas, leaks: ofEgress('proxy-port'), untried: ofEgress('rebinding') },
  {
    weakness: 'one sandbox for all',
    probes: areas,
    leaks: [
      ...ofEgress('unlisted-names', 'another-sandbox'),
      ...ofNeighbours('files', 'sockets', 'ports', 'processes', 'signals', 'shared-memory', 'semaphores', 'messages'),
      ...ofNeighbours('queues', 'shared-files', 'shared-program', 'shared-devices'),
      ...ofLeftovers('processes', 'networks', 'contents'),
    ],
  },
  { weakness: 'kills that find no tree', probes: ['leftovers'], leaks: ofLeftovers('background') },
  {
    weakness: 'a removal that removes nothing',
    probes: ['leftovers'],
    leaks: ofLeftovers('processes', 'cgroups', 'directories', 'networks', 'descriptors'),
  },
]
