import type { Figures, RoundSamples } from './figures.ts'
import type { Goal, Row } from './row.ts'
import { listRows, type PartName, partNames, type RowKey } from './rows.ts'

/** One row with its figures, as `--json` prints it. Figures are null when nothing was measured. */
export interface Result {
  key: RowKey
  part: PartName
  name: string
  unit: Row['unit']
  taken: string
  n: number
  p50: number | null
  p95: number | null
  p99: number | null
  baseline: string | null
  /** The ratio to the baseline: the median of the rounds' ratios of p50. */
  ratio: number | null
  goal: Goal | null
  met: boolean | null
  notMeasured: string | null
  /** Why rounds are missing, when only some were measured. */
  incomplete: string | null
}

/**
 * Lists the rows of these parts, and the baselines in other parts that they name. `isJudged` says whether figures are compared
 * with goals.
 */
export function toResults(figures: Figures, chosen: readonly PartName[], isJudged: boolean): Result[] {
  const named = new Set(chosen.flatMap(listRows).map(([, { baseline }]) => baseline))
  return partNames.flatMap(part =>
    listRows(part)
      .filter(([key]) => chosen.includes(part) || named.has(key))
      .map(([key, row]) => toResult(figures, part, key, row, isJudged)),
  )
}

function toResult(figures: Figures, part: PartName, key: RowKey, row: Row, isJudged: boolean): Result {
  const rounds = figures.read(key)
  const samples = rounds.flatMap(round => round.samples)
  const at = (percent: number) => (samples.length > 0 ? percentile(samples, percent) : null)
  const measured = { p50: at(50), p95: at(95), p99: at(99), ratio: toRatio(rounds) }
  const { name, unit, taken, baseline = null, goal = null } = row
  return {
    ...{ key, part, name, unit, taken, n: samples.length, ...measured, baseline, goal },
    met: goal && isJudged ? isMet(goal, measured) : null,
    notMeasured: samples.length > 0 ? null : (figures.why(part) ?? 'nothing was measured'),
    incomplete: samples.length > 0 ? (figures.why(part) ?? null) : null,
  }
}

function isMet({ of, is, value }: Goal, measured: Record<Goal['of'], number | null>): boolean | null {
  const figure = measured[of]
  if (figure === null) return null
  return is === '≤' ? figure <= value : figure >= value
}

function toRatio(rounds: readonly RoundSamples[]): number | null {
  const ratios = rounds.flatMap(({ samples, baseline }) =>
    baseline ? [percentile(samples, 50) / percentile(baseline, 50)] : [],
  )
  return ratios.length > 0 ? percentile(ratios, 50) : null
}

/** How a row changed from one executable to the other: the median of the rounds' ratios of p50. */
export function compare(key: RowKey, before: Figures, after: Figures): number | null {
  const others = before.read(key)
  const ratios = after.read(key).flatMap(({ samples }, index) => {
    const other = others[index]
    return other ? [percentile(samples, 50) / percentile(other.samples, 50)] : []
  })
  const known = ratios.filter(Number.isFinite)
  return known.length > 0 ? percentile(known, 50) : null
}

export function percentile(samples: readonly number[], percent: number): number {
  const sorted = samples.toSorted((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.ceil((percent / 100) * sorted.length) - 1)] ?? Number.NaN
}
