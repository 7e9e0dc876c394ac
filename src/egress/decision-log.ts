import type { Target } from './policy.ts'

/** Lines of one sandbox in a minute; a program that asks without end does not fill the operator's disk. */
const MAX_LINES = 60
const MINUTE_MS = 60_000

/** Counts a sandbox's decisions and tells them, by host and port alone. */
export interface Journal {
  allowed(target: Target): void
  refused(target: Target, reason: string): void
  counts(): { allowed: number; refused: number; lastRefusal?: string }
}

export function createJournal(environmentId: string, log: (line: string) => void): Journal {
  const counts: ReturnType<Journal['counts']> = { allowed: 0, refused: 0 }
  let minuteEnds = 0
  let lines = 0
  let untold = 0

  const tell = (words: string) => {
    const now = performance.now()
    if (now >= minuteEnds) {
      if (untold > 0) log(`network ${environmentId}: ${untold} more decisions`)
      minuteEnds = now + MINUTE_MS
      lines = 0
      untold = 0
    }
    if (++lines > MAX_LINES) untold++
    else log(`network ${environmentId}: ${words}`)
  }

  return {
    allowed({ name, port }) {
      counts.allowed++
      tell(`allowed ${name} port ${port}`)
    },
    refused({ name, port }, reason) {
      counts.refused++
      counts.lastRefusal = `${name} port ${port}: ${reason}`
      tell(`refused ${counts.lastRefusal}`)
    },
    counts: () => ({ ...counts }),
  }
}
