import { wordsOf } from '../../errors.ts'
import type { Progress } from '../progress.ts'
import type { Figures } from './figures.ts'
import { LeftOut } from './part.ts'
import { measures } from './parts/index.ts'
import { openPlace, type Place } from './place.ts'
import type { PartName } from './rows.ts'
import type { Sizes } from './sizes.ts'
import { type Peer, startPeer } from './start-peer.ts'

/** An executable under measurement. */
export interface Subject {
  executable: string
  figures: Figures
}

export interface RoundsOptions {
  /** The executables. Each is measured in every round, and their order changes from round to round. */
  subjects: readonly Subject[]
  parts: readonly PartName[]
  sizes: Sizes
  /** Where temporary data directories are made. */
  parent: string
  /** Flags of every server. */
  settings: readonly string[]
  signal: AbortSignal
  progress: Progress
}

/** Measures parts round by round, and removes everything that it made. Rejects when `signal` ends it. */
export async function runRounds(options: RoundsOptions): Promise<void> {
  const { subjects, parent, settings, signal } = options
  await using peer = await startPeer()
  const places: Place[] = []
  try {
    for (const { executable } of subjects) places.push(await openPlace({ executable, parent, settings, signal }))
    for (const part of options.parts) await runPart(part, options, places, peer)
  } finally {
    for (const place of places) await place.close()
  }
}

async function runPart(part: PartName, options: RoundsOptions, places: readonly Place[], peer: Peer): Promise<void> {
  const { subjects, sizes, parent, settings, signal, progress } = options
  const count = Math.min(measures[part].rounds, sizes.rounds)
  for (let index = 0; index < count; index++) {
    progress.say(`measuring ${part}, round ${index + 1} of ${count}`)
    const paired = subjects.flatMap((subject, at) => (places[at] ? [{ subject, place: places[at] }] : []))
    for (const { subject, place } of index % 2 === 0 ? paired : paired.toReversed()) {
      const { executable, figures } = subject
      if (figures.why(part) !== undefined) continue
      try {
        await measures[part].measure({
          ...{ sizes, place, peer, signal, record: figures.record },
          openPlace: (more = []) => openPlace({ executable, parent, settings: [...settings, ...more], signal }),
        })
      } catch (error) {
        signal.throwIfAborted()
        figures.leaveOut(part, wordsOf(error), { isFailure: !(error instanceof LeftOut) })
      }
    }
  }
}
