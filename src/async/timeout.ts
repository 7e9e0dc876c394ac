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
