import type { Subject } from './subject.ts'

/** One thing that a sandbox must not be able to do, or must not get. */
export interface Probe {
  /** The id is stable: the area and a name, such as `mounts/bind`. JSON, docs and titles of tests have it. */
  readonly id: string
  /** Says as a verb phrase what the probe tries, such as "mounts a tmpfs". */
  readonly tried: string
  /** Tells the operator in a sentence what follows when the probe finds something. */
  readonly meaning: string
  /** The probe disturbs others or others disturb it, so that it runs alone on its subject. */
  readonly isAlone?: boolean
  /** The probe's time limit in milliseconds. The default is 30 seconds. */
  readonly withinMs?: number
  /** Returns a sentence that says why the probe does not apply to this sandbox. Undefined when it applies. */
  excuse?(subject: Subject): string | undefined
  /**
   * Resolves to what got through, one line for each finding; the list is empty when the sandbox held. Rejects when the probe could not
   * try. `subject.signal` aborts when its time is over.
   */
  run(subject: Subject): Promise<readonly string[]>
}

/** The area is the first half of the id. */
export const areaOf = ({ id }: Pick<Probe, 'id'>): string => id.slice(0, id.indexOf('/'))
