import { areaOf, type Probe } from '../probe.ts'
import { devices } from './devices.ts'
import { guest } from './guest.ts'
import { hostFiles } from './host-files.ts'
import { limits } from './limits.ts'
import { mounts } from './mounts.ts'
import { namespaces } from './namespaces.ts'
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
]

/** The areas in this order. */
export const probeAreas: readonly string[] = [...new Set(probes.map(areaOf))]
