/** Gives turns at a rate, after a burst. Those that wait are bounded: undefined is for one too many. */
export type Pace = () => Promise<void> | undefined

export interface PaceOptions {
  perSecond: number
  burst: number
  maxWaiting: number
}

export function createPace({ perSecond, burst, maxWaiting }: PaceOptions): Pace {
  /** When the turns that were given so far would be over at the rate alone. */
  let paidUntil = Number.NEGATIVE_INFINITY
  let waiting = 0
  return () => {
    const now = performance.now()
    paidUntil = Math.max(paidUntil, now - (burst * 1000) / perSecond) + 1000 / perSecond
    const wait = paidUntil - now
    if (wait <= 0) return Promise.resolve()
    if (waiting >= maxWaiting) {
      paidUntil -= 1000 / perSecond
      return undefined
    }
    waiting++
    return Bun.sleep(wait).finally(() => waiting--)
  }
}
