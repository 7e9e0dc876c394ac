import type { LimitValue } from '../../model/limit.ts'
import { createRecent } from './recent.ts'

/** Token buckets by subject: each holds as many tokens as its limit counts, and is filled again within the limit's while. */
export interface Buckets {
  /** How many milliseconds it is until the subject has a token again; 0: it has one now. */
  waitMs(subject: string, limit: LimitValue): number
  /** Takes a token, also one that is not there: a debt is paid before the next one. Returns how many are left. */
  take(subject: string, limit: LimitValue): number
}

/** The least that is known at once. A bucket that is forgotten is full again. */
const SUBJECTS = 20_000

interface Bucket {
  tokens: number
  at: number
}

/** No timers: a bucket is filled when it is looked at. Of many subjects it keeps those that were seen last. */
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
