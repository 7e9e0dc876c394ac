import { areaOf, type Probe } from '../probe.ts'
import { mounts } from './mounts.ts'

/** Every probe, in the order in which the selftest shows them. */
export const probes: readonly Probe[] = [...mounts]

/** The areas in this order. */
export const probeAreas: readonly string[] = [...new Set(probes.map(areaOf))]
