import type { ReachedLimit } from '../errors.ts'

/** The headers that a page of another origin may read, so that it learns when to try again. */
export const limitHeaderNames = [
  'retry-after',
  'ratelimit',
  'ratelimit-policy',
  'ratelimit-limit',
  'ratelimit-remaining',
  'ratelimit-reset',
] as const

/**
 * Says which limit was reached and when to try again: `RateLimit` and `RateLimit-Policy` as version 10 of
 * draft-ietf-httpapi-ratelimit-headers has them, and the three fields of its version 6, which more clients read.
 */
export function limitHeaders({ limit, count, periodMs, retryAfterSeconds }: ReachedLimit): Record<string, string> {
  const seconds = periodMs / 1000
  return {
    'retry-after': String(retryAfterSeconds),
    'ratelimit-policy': `"${limit}";q=${count}${seconds > 0 ? `;w=${seconds}` : ''}`,
    ratelimit: `"${limit}";r=0;t=${retryAfterSeconds}`,
    'ratelimit-limit': String(count),
    'ratelimit-remaining': '0',
    'ratelimit-reset': String(retryAfterSeconds),
  }
}
