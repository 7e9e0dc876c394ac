/** How often a request is sent again, and for how long in all. */
const MAX_RETRIES = 5
const MAX_TOTAL_MS = 60_000
const FIRST_WAIT_MS = 250
const MAX_WAIT_MS = 8000

export interface RetryOptions {
  signal?: AbortSignal
  /** Undefined: do not retry. Otherwise how long the service asks to wait; 0 when it does not ask. */
  retryWaitMs(error: unknown): number | undefined
}

/** Retries after growing waits with jitter. Throws the last error, or the signal's reason. */
export async function retrying<T>(attempt: () => Promise<T>, { signal, retryWaitMs }: RetryOptions): Promise<T> {
  const startedAt = performance.now()
  for (let count = 0; ; count++) {
    signal?.throwIfAborted()
    try {
      return await attempt()
    } catch (error) {
      signal?.throwIfAborted()
      const asked = retryWaitMs(error)
      if (asked === undefined || count >= MAX_RETRIES) throw error
      const backoff = Math.min(FIRST_WAIT_MS * 2 ** count, MAX_WAIT_MS) * (0.5 + Math.random() / 2)
      const waitMs = Math.max(asked, backoff)
      if (performance.now() - startedAt + waitMs > MAX_TOTAL_MS) throw error
      await pause(waitMs, signal)
    }
  }
}

/** Rejects with the signal's reason. */
async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  signal?.addEventListener('abort', () => resolve(), { once: true })
  await promise
  clearTimeout(timer)
  signal?.throwIfAborted()
}
