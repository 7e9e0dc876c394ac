import type { LimitValue } from '../../model/limit.ts'
import { createRecent } from './recent.ts'

/** Token buckets by subject: each holds as many tokens as its limit counts, and fills up again within the limit's period. */
export interface Buckets {
  /** How many milliseconds remain until the subject has a token; 0 when it has one now. */
  waitMs(subject: string, limit: LimitValue): number
  /** Takes a token even when none is left: the debt is paid off before the next one. Returns how many are left. */
  take(subject: string, limit: LimitValue): number
}

/** How many subjects are remembered at least. A forgotten bucket counts as full. */
const SUBJECTS = 20_000

interface Bucket {
  tokens: number
  at: number
}

/** Makes buckets without timers: a bucket is filled when it is looked at. When there are too many, those seen last are kept. */
export function createBuckets(now: () => number = () => performance.now(), subjects = SUBJECTS): Buckets {
  const known = createRecent<Bucket>(subjects)

  function find(subject: string, { count, periodMs }: LimitValue): Bucket {
    const at = now()
    const bucket = known.get(subject) ?? { tokens: count, at }
    bucket.tokens = Math.min(count, bucket.tokens + ((at - bucket.at) * count) / periodMs)
    bucket.at = at
    return bucket
  }

  return {
    waitMs(subject, limit) {
      const missing = 1 - find(subject, limit).tokens
      return missing <= 0 ? 0 : (missing * limit.periodMs) / limit.count
    },
    take(subject, limit) {
      const bucket = find(subject, limit)
      bucket.tokens -= 1
      known.set(subject, bucket)
      return bucket.tokens
    },
  }
}
