import { areaOf, type Probe } from '../probe.ts'
import { devices } from './devices.ts'
import { egress } from './egress.ts'
import { files } from './files.ts'
import { guest } from './guest.ts'
import { hostFiles } from './host-files.ts'
import { leftovers } from './leftovers.ts'
import { limits } from './limits.ts'
import { mounts } from './mounts.ts'
import { namespaces } from './namespaces.ts'
import { neighbours } from './neighbours.ts'
import { proc } from './proc.ts'
import { systemCalls } from './system-calls.ts'

/** Every probe, in the order in which the selftest shows them. */
export const probes: readonly Probe[] = [
  ...systemCalls,
  ...namespaces,
  ...mounts,
  ...proc,
  ...devices,
  ...guest,
  ...hostFiles,
  ...limits,
  ...egress,
  ...files,
  ...neighbours,
  ...leftovers,
]

/** The areas in the order of the probes. */
export const probeAreas: readonly string[] = [...new Set(probes.map(areaOf))]
