import type { Figures } from './figures.ts'
import type { Place } from './place.ts'
import type { Sizes } from './sizes.ts'
import type { Peer } from './start-peer.ts'

/** What one round of a part works with. */
export interface Round {
  sizes: Sizes
  /** A data directory that the rounds of an executable share, without a server. */
  place: Place
  /** Another data directory, with more settings. The caller closes it. */
  openPlace(settings?: readonly string[]): Promise<Place>
  peer: Peer
  record: Figures['record']
  signal: AbortSignal
}

/** Measures each row of a part once, beside its baselines. */
export interface Part {
  /** How often it is measured at most. */
  rounds: number
  measure(round: Round): Promise<void>
}

/** Why the rows of a part cannot be measured on this machine. */
export class LeftOut extends Error {}
