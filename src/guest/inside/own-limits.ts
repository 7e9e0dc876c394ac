import { limitsOf, type MarkLimit } from './mark-limit.ts'

/** The limits that the guest was started with, but for its marks. */
export interface OwnLimits {
  /** To be called when something could not be started: ends the guest when somebody has changed its limits since. */
  assertKept(): void
}

export function keepLimits(mark: MarkLimit): OwnLimits {
  const read = () =>
    limitsOf('self')
      .split('\n')
      .filter(line => !line.startsWith(mark.line))
      .join('\n')
  const before = read()
  return {
    assertKept() {
      // Nothing could be started for as long as it runs, and it may not even read them: the sandbox starts anew.
      if (read() !== before) process.exit(1)
    },
  }
}
