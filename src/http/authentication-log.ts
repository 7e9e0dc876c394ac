import { findRefusedKey } from '../core/access/keys.ts'
import type { Log } from '../core/runtime.ts'
import { ApiError } from '../errors.ts'

/** Logs each refused authentication: address, reason, and the id of a known key. Never the credential itself. */
export interface AuthenticationLog {
  refused(error: unknown, from: { address: string | undefined; id: string }): void
}

const MAX_LINES = 60
const PERIOD_MS = 60_000

/** Logs at most 60 lines a minute. The next line after that says how many were left out. */
export function createAuthenticationLog(log: Log, now: () => number = () => performance.now()): AuthenticationLog {
  let periodStart = Number.NEGATIVE_INFINITY
  let lines = 0
  let unlogged = 0
  return {
    refused(error, { address = 'an unknown address', id: requestId }) {
      if (!(error instanceof ApiError) || error.code !== 'unauthorized') return
      if (now() - periodStart >= PERIOD_MS) {
        if (unlogged > 0) log(`unauthorized: ${unlogged} more in the last minutes`)
        periodStart = now()
        lines = 0
        unlogged = 0
      }
      lines += 1
      if (lines > MAX_LINES) {
        unlogged += 1
        return
      }
      const key = findRefusedKey(error)
      const who = key === undefined ? '' : `, key ${key}`
      log(`unauthorized: ${address}${who}: ${error.message}`, 'info', { requestId })
    },
  }
}
