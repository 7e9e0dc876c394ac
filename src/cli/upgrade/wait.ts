import { readFileSync } from 'node:fs'

const LOOK_MS = 10

/** Resolves to true as soon as `isSo` holds, and to false when it does not hold in time. */
export async function waitUntil(isSo: () => boolean | Promise<boolean>, withinMs: number): Promise<boolean> {
  const deadline = performance.now() + withinMs
  while (!(await isSo())) {
    if (performance.now() > deadline) return false
    await Bun.sleep(LOOK_MS)
  }
  return true
}

/** Returns false also for a process that has ended and whose parent has not asked for its exit yet. */
export function isAlive(pid: number): boolean {
  try {
    return !/^State:\s*[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}
