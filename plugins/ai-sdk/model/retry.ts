import { setTimeout as wait } from 'node:timers/promises'
import { APICallError } from 'ai'

export const MAX_RETRIES = 4
const FIRST_WAIT_MS = 1000
const MAX_WAIT_MS = 60_000

/** Whether the same call may succeed a little later. An error inside a stream counts: nothing of it was shown. */
export function isRetryable(error: unknown): boolean {
  if (APICallError.isInstance(error)) {
    if (error.responseHeaders?.['x-should-retry'] === 'false') return false
    // 402 is an exceeded budget and is never retried. Without a status the provider was not reached, or its answer was cut.
    return error.statusCode === undefined || error.isRetryable
  }
  return true
}

/** How long to wait before a retry, of which the first is 0: as long as the provider asks, up to a minute, or a growing time. */
export function retryWaitMs(error: unknown, retry: number): number {
  const asked = APICallError.isInstance(error) ? readRetryAfterMs(error.responseHeaders ?? {}) : undefined
  return Math.min(asked ?? FIRST_WAIT_MS * 2 ** retry, MAX_WAIT_MS)
}

function readRetryAfterMs(headers: Record<string, string>): number | undefined {
  const { 'retry-after-ms': ms, 'retry-after': after } = headers
  const asked = ms !== undefined ? Number(ms) : after !== undefined ? inMs(after) : Number.NaN
  return Number.isFinite(asked) && asked >= 0 ? asked : undefined
}

/** `after`: seconds, or a date. */
const inMs = (after: string): number =>
  /^[\d.]+$/.test(after) ? Number(after) * 1000 : Math.max(0, Date.parse(after) - Date.now())

/** Resolves early, without an error, when the signal is aborted. */
export const pause = (ms: number, signal: AbortSignal): Promise<void> => wait(ms, undefined, { signal }).catch(() => {})
