const FIRST_MS = 1000
const LONGEST_MS = 3_600_000
const GIVE_UP_MS = 86_400_000
/** Spreads tries, so that what failed together is not tried again together. */
const SPREAD = 0.2

/** When the next try comes after this many: after 1 s, 2 s, 4 s and so on up to an hour; undefined a day after `queuedAt`. */
export function nextAttempt(attempts: number, queuedAt: string, now: Date): string | undefined {
  if (now.getTime() - Date.parse(queuedAt) >= GIVE_UP_MS) return undefined
  const waitMs = Math.min(FIRST_MS * 2 ** (attempts - 1), LONGEST_MS)
  return new Date(now.getTime() + waitMs * (1 + SPREAD * (Math.random() - 0.5))).toISOString()
}
