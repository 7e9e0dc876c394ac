import { describeProbes } from './probes.ts'

const isRoot = process.getuid?.() === 0

/** Without cgroups and disks of their own: see docs/selftest.md. */
const excusedForUsers = [
  ...['guest/mark-of-guest', 'limits/memory', 'limits/files', 'limits/cpu', 'neighbours/shared-devices'],
  ...['leftovers/loop-devices', 'leftovers/cgroups'],
]

describeProbes(isRoot ? 'nsjail as root' : 'nsjail as an ordinary user', { backend: 'nsjail' }, [
  ...(isRoot ? [] : excusedForUsers),
  'leftovers/containers',
])
