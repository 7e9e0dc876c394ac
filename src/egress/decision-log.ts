import type { Target } from './policy.ts'

/** Lines for one sandbox in a minute, so that a program that asks without end does not fill the operator's disk. */
const MAX_LINES = 60
const MINUTE_MS = 60_000

/** Counts one sandbox's decisions and logs them, by host and port alone. */
export interface DecisionLog {
  allowed(target: Target): void
  refused(target: Target, reason: string): void
  counts(): { allowed: number; refused: number; lastRefusal?: string }
}

export function createDecisionLog(environmentId: string, log: (line: string) => void): DecisionLog {
  const counts: ReturnType<DecisionLog['counts']> = { allowed: 0, refused: 0 }
  let minuteEnds = 0
  let lines = 0
  let unlogged = 0

  const write = (decision: string) => {
    const now = performance.now()
    if (now >= minuteEnds) {
      if (unlogged > 0) log(`network ${environmentId}: ${unlogged} more decisions`)
      minuteEnds = now + MINUTE_MS
      lines = 0
      unlogged = 0
    }
    if (++lines > MAX_LINES) unlogged++
    else log(`network ${environmentId}: ${decision}`)
  }

  return {
    allowed({ name, port }) {
      counts.allowed++
      write(`allowed ${name} port ${port}`)
    },
    refused({ name, port }, reason) {
      counts.refused++
      counts.lastRefusal = `${name} port ${port}: ${reason}`
      write(`refused ${counts.lastRefusal}`)
    },
    counts: () => ({ ...counts }),
  }
}
