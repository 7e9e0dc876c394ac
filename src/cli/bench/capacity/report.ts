import type { Machine } from '../machine.ts'
import { type Calculated, extrapolate, type Room } from './extrapolate.ts'
import type { Outcome } from './measure.ts'
import { type Group, type MeasuredKey, type MeasuredRow, measuredRows } from './rows.ts'

/** The result of `--capacity`, as `--json` prints it. */
export interface CapacityReport {
  executable: string
  version: string
  quick: boolean
  machine: Machine
  room: Room
  /** Whether other programs kept the machine busy before or after. */
  tooBusy: boolean
  startedAt: string
  seconds: number
  measured: (MeasuredRow & { key: MeasuredKey; value: number | null; n: number })[]
  calculated: Calculated[]
  /** Why a group has no figures, or only some. */
  notMeasured: { group: Group; why: string }[]
}

export interface CapacityInput {
  executable: string
  version: string
  quick: boolean
  machine: Machine
  room: Room
  tooBusy: boolean
  startedAt: Date
  outcome: Outcome
}

export function createCapacityReport({ outcome, startedAt, ...about }: CapacityInput): CapacityReport {
  const { measured, reasons } = outcome
  const rows = Object.entries(measuredRows) as [MeasuredKey, MeasuredRow][]
  return {
    ...about,
    startedAt: startedAt.toISOString(),
    seconds: Math.round((Date.now() - startedAt.getTime()) / 100) / 10,
    measured: rows.map(([key, row]) => ({
      ...{ key, ...row },
      value: measured[key]?.value ?? null,
      n: measured[key]?.n ?? 0,
    })),
    calculated: extrapolate(measured, about.room),
    notMeasured: (Object.entries(reasons) as [Group, string][]).map(([group, why]) => ({ group, why })),
  }
}
