import { wordsOf } from '../../../errors.ts'
import type { Progress } from '../../progress.ts'
import { LeftOut } from '../part.ts'
import { openPlace, type Place } from '../place.ts'
import { measureChats } from './chats.ts'
import { measureReaders } from './readers.ts'
import type { Group, Measured } from './rows.ts'
import { measureSandboxes } from './sandboxes.ts'
import type { CapacitySizes } from './sizes.ts'

const groups: Readonly<Record<Group, (place: Place, sizes: CapacitySizes, measured: Measured) => Promise<void>>> = {
  sandboxes: measureSandboxes,
  chats: measureChats,
  readers: measureReaders,
}

export interface MeasureOptions {
  executable: string
  sizes: CapacitySizes
  /** Where the temporary data directory is made. */
  parent: string
  /** Flags of every server. */
  settings: readonly string[]
  signal: AbortSignal
  progress: Progress
}

export interface Outcome {
  measured: Measured
  /** Why a group has no figures, or only some. */
  reasons: Partial<Record<Group, string>>
  /** Whether a measurement failed that should have succeeded. */
  hasFailed: boolean
}

/** Measures all groups in one temporary data directory, which is always removed. Rejects when `signal` ends it. */
export async function measure(options: MeasureOptions): Promise<Outcome> {
  const { executable, sizes, parent, settings, signal, progress } = options
  const outcome: Outcome = { measured: {}, reasons: {}, hasFailed: false }
  const place = await openPlace({ executable, parent, settings, signal })
  try {
    for (const [group, work] of Object.entries(groups) as [Group, (typeof groups)[Group]][]) {
      progress.say(`measuring ${group}`)
      try {
        await work(place, sizes, outcome.measured)
      } catch (error) {
        signal.throwIfAborted()
        outcome.reasons[group] = wordsOf(error)
        outcome.hasFailed ||= !(error instanceof LeftOut)
      }
    }
  } finally {
    await place.close()
  }
  return outcome
}
