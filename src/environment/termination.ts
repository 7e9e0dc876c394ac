export type TerminationReason = 'timeout' | 'abort'

/** Why something that runs was ended from outside; the first reason stays. Nothing ends it once this is disposed of. */
export interface Termination extends Disposable {
  readonly reason: TerminationReason | undefined
}

/** Calls `end` once: after `timeoutMs`, or when the signal is aborted. */
export function terminateOn(
  { timeoutMs, signal }: { timeoutMs?: number | undefined; signal?: AbortSignal | undefined },
  end: (reason: TerminationReason) => void,
): Termination {
  let reason: TerminationReason | undefined
  const give = (why: TerminationReason) => () => {
    if (reason) return
    reason = why
    end(why)
  }
  const timer = timeoutMs === undefined ? undefined : setTimeout(give('timeout'), timeoutMs)
  const abort = give('abort')
  signal?.addEventListener('abort', abort)
  if (signal?.aborted) abort()
  return {
    get reason() {
      return reason
    },
    [Symbol.dispose]() {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
    },
  }
}
