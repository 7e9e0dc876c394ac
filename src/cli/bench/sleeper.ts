import { LeftOut } from './part.ts'
import { findProcesses } from './process-figures.ts'
import type { BenchServer, SandboxIds } from './server.ts'

const LOOK_MS = 1
const APPEAR_MS = 2000

/** A process in a sandbox, as the machine outside sees it. */
export interface Sleeper {
  /** Resolves when the process has ended. */
  ended(signal: AbortSignal): Promise<void>
}

/** Leaves a process behind in a sandbox that neither the server nor the command that started it follows. */
export async function startSleeper(server: BenchServer, sandbox: SandboxIds): Promise<Sleeper> {
  const name = `threadbox-bench-${crypto.randomUUID()}`
  await server.exec(sandbox, `sh -c 'sleep 1000; true' ${name} > /dev/null 2>&1 & true`)
  // A process has no command line for a moment while it executes its program.
  const startedAt = performance.now()
  let pids = findProcesses(name)
  while (pids.length === 0 && performance.now() - startedAt < APPEAR_MS) {
    await Bun.sleep(LOOK_MS)
    pids = findProcesses(name)
  }
  if (pids.length === 0) throw new LeftOut('processes of sandboxes are not seen on this machine')
  return {
    async ended(signal) {
      while (pids.some(isAlive)) {
        signal.throwIfAborted()
        await Bun.sleep(LOOK_MS)
      }
    },
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
