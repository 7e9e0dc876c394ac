/** Looks every few milliseconds until it is so. Throws after 25 seconds, before a test of 30 would end without a word. */
export async function until(isSo: () => boolean | Promise<boolean>, what = String(isSo)): Promise<void> {
  const deadline = performance.now() + 25_000
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`never so: ${what}`)
    await Bun.sleep(5)
  }
}
