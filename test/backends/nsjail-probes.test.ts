import { describeProbes } from './probes.ts'

const isRoot = process.getuid?.() === 0

/** Without cgroups and disks of their own: see docs/selftest.md. */
const excusedForUsers = ['guest/mark-of-guest', 'limits/memory', 'limits/files', 'limits/cpu']

describeProbes(isRoot ? 'nsjail as root' : 'nsjail as an ordinary user', { backend: 'nsjail' }, [
  ...(process.arch === 'x64' ? [] : ['system-calls/x32']),
  ...(isRoot ? [] : excusedForUsers),
])
