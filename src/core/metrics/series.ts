/** Numbers by labels, named as OpenTelemetry names them: `threadbox.exec.duration`, in the unit `s`. */
export interface Family {
  name: string
  help: string
  /** A unit of OpenTelemetry: `s`, `By`, `USD`, or what is counted, in braces. */
  unit: string
  kind: 'counter' | 'gauge' | 'histogram'
  labelNames: readonly string[]
  points: readonly Point[]
  /** For a histogram: the upper bound of each bucket but the last. */
  bounds?: readonly number[]
}

export interface Point {
  /** Label values, in the order of the family's names. */
  labels: readonly string[]
  /** The number; for a histogram, the sum. */
  value: number
  /** For a histogram: how many values fell into each bucket. */
  counts?: readonly number[]
}

/** The description of a series of numbers. */
export type About = Pick<Family, 'name' | 'help' | 'unit' | 'labelNames'>

/** Numbers that grow as things happen. */
export interface Series {
  /** Adds to a counter, or one value to a histogram. */
  add(labels: readonly string[], value?: number): void
  family(): Family
}

/**
 * Labels come from short lists. Beyond this many, the rest is counted together, so that invented names cannot fill the memory.
 */
const MAX_POINTS = 2000
const OTHER = 'other'

export function createCounter(about: About): Series {
  const points = createPoints<{ labels: readonly string[]; value: number }>(labels => ({ labels, value: 0 }))
  return {
    add(labels, value = 1) {
      points.of(labels).value += value
    },
    family: () => ({ ...about, kind: 'counter', points: points.all() }),
  }
}

export function createHistogram(about: About, bounds: readonly number[]): Series {
  const points = createPoints(labels => ({ labels, value: 0, counts: new Array<number>(bounds.length + 1).fill(0) }))
  return {
    add(labels, value = 1) {
      const point = points.of(labels)
      const bucket = bounds.findIndex(bound => value <= bound)
      const at = bucket < 0 ? bounds.length : bucket
      point.counts[at] = (point.counts[at] ?? 0) + 1
      point.value += value
    },
    family: () => ({ ...about, kind: 'histogram', points: points.all(), bounds }),
  }
}

function createPoints<Kept>(make: (labels: readonly string[]) => Kept) {
  const kept = new Map<string, Kept>()
  const of = (labels: readonly string[]): Kept => {
    const key = labels.join('\0')
    const found = kept.get(key)
    if (found) return found
    if (kept.size >= MAX_POINTS && labels.some(label => label !== OTHER)) return of(labels.map(() => OTHER))
    const made = make(labels)
    kept.set(key, made)
    return made
  }
  return { of, all: () => [...kept.values()] }
}

/** A family of numbers as they are now. */
export const gauge = (about: About, points: readonly Point[]): Family => ({ ...about, kind: 'gauge', points })
