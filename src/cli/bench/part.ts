import type { Figures } from './figures.ts'
import type { Place } from './place.ts'
import type { Sizes } from './sizes.ts'
import type { Peer } from './start-peer.ts'

/** What a part gets in each of its rounds. */
export interface Round {
  sizes: Sizes
  /** A data directory that all rounds of an executable share; no server runs on it. */
  place: Place
  /** Opens another data directory, with more settings. The caller closes it. */
  openPlace(settings?: readonly string[]): Promise<Place>
  peer: Peer
  record: Figures['record']
  signal: AbortSignal
}

/** Measures each row of a part once, next to its baselines. */
export interface Part {
  /** In how many rounds the part is measured at most. */
  rounds: number
  measure(round: Round): Promise<void>
}

/** Explains why the rows of a part cannot be measured on this machine. */
export class LeftOut extends Error {}
