import type { Flag } from '../read/arguments.ts'

/** A setting of the server. */
export interface Setting extends Flag {
  value: string
  /** Returns the checked value. Throws an error that says what it must be. */
  parse: (text: string) => unknown
  /** Its value is shown to nobody. */
  isSecret?: true
}
