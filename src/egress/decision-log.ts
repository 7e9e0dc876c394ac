import type { Target } from './policy.ts'

/** Lines for one sandbox in a minute, so that a program that asks without end does not fill the operator's disk. */
const MAX_LINES = 60
const MINUTE_MS = 60_000

/** How many decisions are kept for a sandbox. One that is made again moves to the end, with its count. */
const MAX_KEPT = 200

/** A decision about one host and port, and how often it was made. */
export interface Decision {
  host: string
  port: number
  /** Set when the name was only looked up: the rules allow none of its ports, and `port` is that of DNS. */
  isName?: true
  isAllowed: boolean
  /** Why it was refused, or why an allowed connection failed. */
  reason?: string
  count: number
  /** When it was made last. */
  at: string
}

/** A target that a program may not reach, by a connection or only by a look-up. */
export interface Refused extends Pick<Target, 'name' | 'port'> {
  isName?: true
}

/** Counts one sandbox's decisions and logs them, by host and port alone. */
export interface DecisionLog {
  allowed(target: Target): void
  refused(target: Refused, reason: string): void
  /** Notes that an allowed target cannot be reached. A program without a proxy only sees that its connection is reset. */
  failed(target: Target, reason: string): void
  counts(): { allowed: number; refused: number; lastRefusal?: string }
  /** The decisions, latest first. */
  list(): Decision[]
}

export function createDecisionLog(environmentId: string, log: (line: string) => void): DecisionLog {
  const counts: ReturnType<DecisionLog['counts']> = { allowed: 0, refused: 0 }
  let minuteEnds = 0
  let lines = 0
  let unlogged = 0

  const kept = new Map<string, Decision>()
  const keep = (decision: Omit<Decision, 'count' | 'at'>) => {
    const { host, port, isName, isAllowed, reason } = decision
    const key = JSON.stringify([host, port, isName, isAllowed, reason])
    const count = (kept.get(key)?.count ?? 0) + 1
    kept.delete(key)
    kept.set(key, { ...decision, count, at: new Date().toISOString() })
    const [oldest] = kept.keys()
    if (kept.size > MAX_KEPT && oldest !== undefined) kept.delete(oldest)
  }

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
      keep({ host: name, port, isAllowed: true })
      write(`allowed ${name} port ${port}`)
    },
    refused({ name, port, isName }, reason) {
      counts.refused++
      keep({ host: name, port, ...(isName && { isName }), isAllowed: false, reason })
      counts.lastRefusal = `${isName ? `the name ${name}` : `${name} port ${port}`}: ${reason}`
      write(`refused ${counts.lastRefusal}`)
    },
    failed({ name, port }, reason) {
      keep({ host: name, port, isAllowed: true, reason })
      write(`not reached ${name} port ${port}: ${reason}`)
    },
    counts: () => ({ ...counts }),
    list: () => [...kept.values()].reverse(),
  }
}
