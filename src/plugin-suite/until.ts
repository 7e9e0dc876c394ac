/** Polls until the condition holds. Throws after 50 seconds: the time limit of 60 seconds would not say what was missing. */
export async function until(isSo: () => boolean | Promise<boolean>, what = String(isSo)): Promise<void> {
  const deadline = performance.now() + 50_000
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`never so: ${what}`)
    await Bun.sleep(5)
  }
}
