/**
 * The outcome of `work`, or of `whenLate` when it takes longer than `timeoutMs`; it goes on then, and its failure is
 * dropped.
 */
export async function beforeTimeout<T>(timeoutMs: number, work: Promise<T>, whenLate: () => T): Promise<T> {
  const late = Promise.withResolvers<void>()
  const timer = setTimeout(late.resolve, timeoutMs)
  try {
    return await Promise.race([work, late.promise.then(whenLate)])
  } finally {
    clearTimeout(timer)
    work.catch(() => {})
  }
}

/** Waits for `work` to end, well or not, but no longer than `timeoutMs`. False when it takes longer. Never rejects. */
export const settlesWithin = (timeoutMs: number, work: Promise<unknown>): Promise<boolean> => {
  const settled = () => true
  return beforeTimeout(timeoutMs, work.then(settled, settled), () => false)
}
