import type { Flag } from '../read/arguments.ts'

/** A setting of the server. */
export interface Setting extends Flag {
  value: string
  /** Returns the checked value. Throws an error that says what the value must be. */
  parse: (text: string) => unknown
  /** The value is secret, and is shown to nobody. */
  isSecret?: true
}
