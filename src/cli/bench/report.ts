import type { Figures } from './figures.ts'
import type { Machine } from './machine.ts'
import { compare, type Result, toResults } from './results.ts'
import type { PartName } from './rows.ts'

/** The result of a run of the bench, as `--json` prints it. */
export interface Report {
  executable: string
  version: string
  /** Whether the sizes were smaller than the rows' names say; goals are not judged then. */
  quick: boolean
  machine: Machine
  /** Whether other programs kept the machine busy before or after. */
  tooBusy: boolean
  startedAt: string
  seconds: number
  rows: readonly (Result & Partial<Comparison>)[]
  against?: { executable: string; version: string }
}

/** The result of another executable in the same rounds. */
export interface Comparison {
  before: Pick<Result, 'n' | 'p50' | 'p95' | 'p99' | 'ratio' | 'notMeasured'>
  /** The ratio of after to before: the median of the rounds' ratios of p50. */
  change: number | null
}

export interface ReportInput {
  /** One executable, or the earlier one and the one that is compared with it. */
  measured: readonly { executable: string; version: string; figures: Figures }[]
  parts: readonly PartName[]
  machine: Machine
  tooBusy: boolean
  isQuick: boolean
  startedAt: Date
}

export function createReport({ measured, parts, machine, tooBusy, isQuick, startedAt }: ReportInput): Report {
  const own = measured.at(-1)
  const earlier = measured.length > 1 ? measured[0] : undefined
  if (!own) throw new Error('nothing was measured')
  const others = earlier && toResults(earlier.figures, parts, false)
  const rows = toResults(own.figures, parts, !isQuick).map((row, index) => {
    const other = others?.[index]
    if (!earlier || !other) return row
    const { n, p50, p95, p99, ratio, notMeasured } = other
    const before = { n, p50, p95, p99, ratio, notMeasured }
    return { ...row, before, change: compare(row.key, earlier.figures, own.figures) }
  })
  return {
    ...{ version: own.version, executable: own.executable, quick: isQuick, machine, tooBusy },
    ...(earlier && { against: { executable: earlier.executable, version: earlier.version } }),
    startedAt: startedAt.toISOString(),
    seconds: Math.round((Date.now() - startedAt.getTime()) / 100) / 10,
    rows,
  }
}
