/** Waits for `work` to settle, but no longer than `timeoutMs`. Never throws. */
export async function within(timeoutMs: number, work: Promise<unknown>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, timeoutMs)
  work.then(
    () => resolve(),
    () => resolve(),
  )
  await promise
  clearTimeout(timer)
}

/** The outcome of `work`, or of `whenLate` when it has not settled by then; its own outcome is then ignored. */
export async function beforeTimeout<T>(timeoutMs: number, work: Promise<T>, whenLate: () => T): Promise<T> {
  const late = Promise.withResolvers<T>()
  const timer = setTimeout(() => {
    try {
      late.resolve(whenLate())
    } catch (error) {
      late.reject(error)
    }
  }, timeoutMs)
  try {
    return await Promise.race([work, late.promise])
  } finally {
    clearTimeout(timer)
  }
}
