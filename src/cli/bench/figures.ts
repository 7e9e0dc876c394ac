import { listRows, type PartName, partNames, type RowKey } from './rows.ts'

/** The samples of one round. */
export interface RoundSamples {
  samples: readonly number[]
  /** The samples of the row's baseline, from the same round. */
  baseline?: readonly number[]
}

/** The figures that were measured of one executable. */
export interface Figures {
  /** Adds the samples of one round, with those of the row's baseline from the same round. */
  record(key: RowKey, samples: readonly number[], baseline?: readonly number[]): void
  /** Notes why the rows of a part have no samples, or no more of them. */
  leaveOut(part: PartName, why: string, options: { isFailure: boolean }): void
  read(key: RowKey): RoundSamples[]
  why(part: PartName): string | undefined
  /** Whether a part failed that should have been measured. */
  readonly hasFailed: boolean
}

export function createFigures(): Figures {
  const rounds = new Map<RowKey, RoundSamples[]>()
  const reasons = new Map<PartName, string>()
  let hasFailed = false
  const known = new Map(partNames.flatMap(listRows))
  const add = (key: RowKey, round: RoundSamples) => rounds.set(key, [...(rounds.get(key) ?? []), round])
  return {
    record(key, samples, baseline) {
      add(key, { samples, ...(baseline && { baseline }) })
      const beside = known.get(key)?.baseline as RowKey | undefined
      // Several rows may share one baseline in a round.
      if (beside && baseline && !rounds.get(beside)?.some(({ samples: same }) => same === baseline))
        add(beside, { samples: baseline })
    },
    leaveOut(part, why, { isFailure }) {
      reasons.set(part, why)
      hasFailed ||= isFailure
    },
    read: key => rounds.get(key) ?? [],
    why: part => reasons.get(part),
    get hasFailed() {
      return hasFailed
    },
  }
}
