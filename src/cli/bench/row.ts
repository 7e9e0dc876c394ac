/** A limit for a row's ratio to its baseline, or for one of its own figures. */
export interface Goal {
  of: 'ratio' | 'p50' | 'p99'
  is: '≤' | '≥'
  value: number
}

export type Unit = 'ms' | 'µs' | 'MB' | 'MiB/s' | 's/GiB' | '/s' | 'failed'

/** One line of the table: what is measured, how, and the goal. */
export interface Row {
  name: string
  unit: Unit
  /** The row that is measured in the same round for comparison. */
  baseline?: string
  goal?: Goal
  /** How the row is measured. */
  taken: string
}

/** The goal for a row's ratio to its baseline. */
export const ratio = (is: Goal['is'], value: number): Goal => ({ of: 'ratio', is, value })
/** The goal for the most that a row's p50 may be. */
export const p50 = (value: number): Goal => ({ of: 'p50', is: '≤', value })

/** How rows of CPU time are taken. */
export const CPU = "user and system time of the server's process, for a GiB"

/** A goal as the table and the documentation show it. */
export const describeGoal = ({ of, is, value }: Goal, unit: Unit): string =>
  unit === 'failed' ? 'none' : `${of === 'ratio' ? '' : `${of} `}${is} ${value} ${of === 'ratio' ? '×' : unit}`
