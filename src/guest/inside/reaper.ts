import type { Libc } from './libc.ts'

/** Waits for the orphans that land on pid 1. Bun waits for its own children only. */
export interface Reaper {
  /** Children that Bun waits for itself. */
  adopt(pid: number): void
  release(pid: number): void
}

export function startReaper(libc: Libc): Reaper {
  const own = new Set<number>()

  const sweep = () => {
    for (;;) {
      const pid = libc.peekEnded()
      // While a child of Bun's is first in line, those behind it wait for its release.
      if (pid === undefined || own.has(pid)) return
      libc.reap(pid)
    }
  }
  if (process.pid === 1) process.on('SIGCHLD', sweep)

  return {
    adopt: pid => void own.add(pid),
    release(pid) {
      own.delete(pid)
      if (process.pid === 1) sweep()
    },
  }
}
