import { describeProbes } from './probes.ts'

const isRoot = process.getuid?.() === 0

describeProbes(isRoot ? 'nsjail as root' : 'nsjail as an ordinary user', { backend: 'nsjail' })
