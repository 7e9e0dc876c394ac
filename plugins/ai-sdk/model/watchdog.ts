/** Aborts work that makes no progress. */
export interface Watchdog {
  /** Aborted with the caller's signal, or when `reset` was not called for too long. */
  signal: AbortSignal
  /** Reports progress. */
  reset(): void
  /** Whether the lack of progress was the reason. */
  hasTimedOut(): boolean
  /** Ends the watch and aborts the signal, so that everything still open is closed. */
  stop(): void
}

export function createWatchdog(parent: AbortSignal, stallMs: number): Watchdog {
  const abort = new AbortController()
  let isLate = false
  const giveUp = () => {
    isLate = true
    abort.abort(new Error(`Nothing came for ${Math.round(stallMs / 1000)} seconds.`))
  }
  const follow = () => abort.abort(parent.reason)
  if (parent.aborted) follow()
  parent.addEventListener('abort', follow)
  let timer = setTimeout(giveUp, stallMs)
  return {
    signal: abort.signal,
    reset() {
      clearTimeout(timer)
      timer = setTimeout(giveUp, stallMs)
    },
    hasTimedOut: () => isLate,
    stop() {
      clearTimeout(timer)
      parent.removeEventListener('abort', follow)
      abort.abort()
    },
  }
}
