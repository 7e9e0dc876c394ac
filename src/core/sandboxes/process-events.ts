import type { Database } from 'bun:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { writeWhenFree } from '../../db/busy.ts'
import { insertEvent } from '../../db/events.ts'
import { MAX_PROCESSES } from '../../environment/process-table.ts'
import { messageOf } from '../../errors.ts'
import type { Sandbox } from '../../model/sandbox.ts'
import type { EnvironmentProcesses, ProcessExit, ProcessInfo } from '../../plugin-api/index.ts'
import type { Log, ProcessEvents } from '../runtime.ts'

/** An offset that no process reaches: a read from there waits for the process's end and takes no output from other readers. */
const BEYOND_ALL_OUTPUT = Number.MAX_SAFE_INTEGER
/** The pause between reads on a backend that does not wait for output. */
const PAUSE_MS = 1000

/**
 * Makes the events of processes for the runtime. A request fails only when the start or the removal of a process cannot be
 * stored.
 */
export function createProcessEvents(db: Database, log: Log): ProcessEvents {
  const closed = new AbortController()
  /** The processes of each sandbox whose end is waited for. */
  const followed = new Map<string, Set<number>>()

  const store = (type: 'process.started' | 'process.ended' | 'process.removed', sandbox: Sandbox, data: object) => {
    const event = { type, sandboxId: sandbox.id, data: { sandboxId: sandbox.id, agent: sandbox.agentSlug, ...data } }
    return writeWhenFree(db, () => insertEvent(db, event))
  }

  async function followToEnd(sandbox: Sandbox, processes: EnvironmentProcesses, pid: number): Promise<void> {
    const pids = followed.get(sandbox.id) ?? new Set()
    // After a restart, a guest may list other processes under the same ids.
    if (pids.has(pid) || pids.size === MAX_PROCESSES) return
    followed.set(sandbox.id, pids.add(pid))
    try {
      const exit = await untilExit(processes, pid, closed.signal)
      if (!closed.signal.aborted) await store('process.ended', sandbox, { pid, exitCode: null, signal: null, ...exit })
    } finally {
      pids.delete(pid)
      if (pids.size === 0) followed.delete(sandbox.id)
    }
  }

  const follow: ProcessEvents['follow'] = (sandbox, processes, infos) => {
    for (const { pid, exit } of infos) {
      if (exit) continue
      followToEnd(sandbox, processes, pid).catch(error =>
        log(`${sandbox.id}: the end of a process could not be stored: ${messageOf(error)}`, 'error'),
      )
    }
  }

  return {
    async started(sandbox, processes, info) {
      await store('process.started', sandbox, { pid: info.pid })
      // A process that has ended by now is followed too: its end gets an event all the same.
      follow(sandbox, processes, [withoutExit(info)])
    },
    follow,
    removed: (sandbox, pid) => store('process.removed', sandbox, { pid }),
    close: () => closed.abort(),
  }
}

const withoutExit = ({ exit: _, ...info }: ProcessInfo): ProcessInfo => info

/** Waits for a process's exit. Undefined when it was killed with its sandbox, when it was removed, and after an abort. */
export async function untilExit(
  processes: EnvironmentProcesses,
  pid: number,
  signal: AbortSignal,
): Promise<ProcessExit | undefined> {
  try {
    for (;;) {
      const { exit } = await processes.read(pid, BEYOND_ALL_OUTPUT, { wait: true, signal })
      if (exit) return exit
      await sleep(PAUSE_MS, undefined, { signal })
    }
  } catch {
    return undefined
  }
}
