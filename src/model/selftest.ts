import type { Isolation } from '../plugin-api/index.ts'

/**
 * What became of a probe. `held`: nothing got through. `leaked`: something did. `untried`: it could not be tried. `excused`: it says
 * nothing about this sandbox.
 */
export type ProbeOutcome = 'held' | 'leaked' | 'untried' | 'excused'

export const probeOutcomes = ['held', 'leaked', 'untried', 'excused'] as const satisfies readonly ProbeOutcome[]

/** One probe of the selftest, on one backend. */
export interface ProbeResult {
  /** The area and a name, as `mounts/bind`. */
  id: string
  area: string
  /** What was tried, as a verb phrase. */
  tried: string
  /** What follows where it does not hold. */
  meaning: string
  outcome: ProbeOutcome
  /** A line for each thing that got through, or why it could not be tried, or why it is excused. Empty when it held. */
  found: readonly string[]
  /** Milliseconds. */
  ms: number
}

/** The selftest of one backend. */
export interface SelftestedBackend {
  backend: string
  /** The engine's runtime, when one was chosen. */
  runtime?: string
  /** Absent when no sandbox was made. */
  isolation?: Isolation
  /** Its checks failed, and it was not tried: what is missing. */
  notReady?: string
  /** Why it could not be tried, though its checks hold. */
  failed?: string
  probes: readonly ProbeResult[]
  /** Milliseconds. */
  ms: number
}

/** One run of `threadbox selftest`. */
export interface SelftestReport {
  version: string
  /** ISO 8601. */
  startedAt: string
  /** Milliseconds. */
  ms: number
  /** Whether it ran as root, who can confine more than an ordinary user can. */
  isRoot: boolean
  /** The area that was tried alone. Absent when all were. */
  area?: string
  backends: readonly SelftestedBackend[]
}
