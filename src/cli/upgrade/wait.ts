import { readFileSync } from 'node:fs'

const LOOK_MS = 10

/** Resolves to true as soon as it is so, to false when it is not so in time. */
export async function waitUntil(isSo: () => boolean | Promise<boolean>, withinMs: number): Promise<boolean> {
  const deadline = performance.now() + withinMs
  while (!(await isSo())) {
    if (performance.now() > deadline) return false
    await Bun.sleep(LOOK_MS)
  }
  return true
}

/** False for a process that has ended, also while its parent has not asked how. */
export function isAlive(pid: number): boolean {
  try {
    return !/^State:\s*[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}
