import { networkInterfaces } from 'node:os'
import { describeProbes } from './probes.ts'

const isRoot = process.getuid?.() === 0

/** Without cgroups and disks of their own: see docs/selftest.md. */
const excusedForUsers = [
  ...['guest/mark-of-guest', 'limits/memory', 'limits/files', 'limits/cpu', 'neighbours/shared-devices'],
  ...['leftovers/loop-devices', 'leftovers/cgroups'],
]

const hasOwnAddress = Object.values(networkInterfaces()).some(found => found?.some(each => !each.internal))

describeProbes(isRoot ? 'nsjail as root' : 'nsjail as an ordinary user', { backend: 'nsjail' }, [
  ...(process.arch === 'x64' ? [] : ['system-calls/x32']),
  ...(isRoot ? [] : excusedForUsers),
  ...(hasOwnAddress ? [] : ['egress/own-addresses']),
  'leftovers/containers',
])
