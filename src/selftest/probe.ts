import type { Subject } from './subject.ts'

/** One thing that a sandbox must not be able to do, or must not get. */
export interface Probe {
  /** Stable: the area and a name, as `mounts/bind`. It is in JSON, in docs and in titles of tests. */
  readonly id: string
  /** What is tried, as a verb phrase: "mounts a tmpfs". */
  readonly tried: string
  /** What follows where it does not hold, as a sentence for the operator. */
  readonly meaning: string
  /** It disturbs others, or others disturb it: nothing else is tried on its subject meanwhile. */
  readonly isAlone?: boolean
  /** How long it may take, in milliseconds; 30 seconds unless given. */
  readonly withinMs?: number
  /** Why it says nothing about this sandbox, as a sentence. Undefined when it is tried. */
  excuse?(subject: Subject): string | undefined
  /**
   * Resolves to what got through, a line each; empty when it held. Rejects when it could not be tried. `subject.signal` aborts when
   * its time is over.
   */
  run(subject: Subject): Promise<readonly string[]>
}

/** The first half of its id. */
export const areaOf = ({ id }: Pick<Probe, 'id'>): string => id.slice(0, id.indexOf('/'))
