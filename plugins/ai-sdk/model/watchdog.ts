/** Ends what makes no progress. */
export interface Watchdog {
  /** Aborted by the caller's signal, or when nothing came for too long. */
  signal: AbortSignal
  /** Something came. */
  feed(): void
  /** Whether it was this that ended it. */
  hasBitten(): boolean
  /** Nothing more is wanted: what is still open is closed. */
  stop(): void
}

export function createWatchdog(parent: AbortSignal, stallMs: number): Watchdog {
  const abort = new AbortController()
  let bitten = false
  const bite = () => {
    bitten = true
    abort.abort(new Error(`Nothing came for ${Math.round(stallMs / 1000)} seconds.`))
  }
  const follow = () => abort.abort(parent.reason)
  if (parent.aborted) follow()
  parent.addEventListener('abort', follow)
  let timer = setTimeout(bite, stallMs)
  return {
    signal: abort.signal,
    feed() {
      clearTimeout(timer)
      timer = setTimeout(bite, stallMs)
    },
    hasBitten: () => bitten,
    stop() {
      clearTimeout(timer)
      parent.removeEventListener('abort', follow)
      abort.abort()
    },
  }
}
