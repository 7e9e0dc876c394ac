import type { Probe } from '../probe.ts'
import { insideProbe } from '../run-inside.ts'

export const mounts: readonly Probe[] = [
  insideProbe({
    id: 'mounts/bind',
    tried: 'binds a directory to another place',
    meaning: 'A process inside could show itself what its sandbox hides.',
  }),
  insideProbe({
    id: 'mounts/tmpfs',
    tried: 'mounts a tmpfs',
    meaning: "A process inside could use the host's memory beyond the disk limit.",
  }),
]
