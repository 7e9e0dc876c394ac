/** Looks every few milliseconds until it is so. Throws after ten seconds. */
export async function until(isSo: () => boolean | Promise<boolean>, what = String(isSo)): Promise<void> {
  const deadline = performance.now() + 10_000
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`never so: ${what}`)
    await Bun.sleep(5)
  }
}
