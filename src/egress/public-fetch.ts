import { dial, type Resolve } from './dial.ts'
import { fetchBy } from './fetch.ts'
import type { Policy } from './policy.ts'
import { parseRules, type Rule } from './rules.ts'

/**
 * Makes the server's own fetch for addresses that others have chosen: it reaches public addresses and those of `permitted`, and
 * follows no redirect. Rejects with an ApiError that says why.
 */
export function createPublicFetch(permitted: readonly Rule[], resolve: Resolve) {
  const anywhere = parseRules(['0.0.0.0/0', '::/0'])
  const policy: Policy = { mode: 'public', layers: [{ allow: anywhere, deny: [] }], ceiling: permitted }
  return (url: string, init: RequestInit & { signal: AbortSignal }): Promise<Response> =>
    fetchBy(
      (target, signal) => dial({ target, signal, resolve, policy: () => policy, onAllowed() {}, onSocket() {} }),
      url,
      { ...init, redirect: 'manual' },
    )
}
