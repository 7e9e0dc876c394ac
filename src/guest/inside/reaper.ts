import { constants } from 'node:os'
import type { ProcessExit } from '../../plugin-api/index.ts'
import type { Libc } from './libc.ts'

/** Waits for every child of this process: for the commands, and for the orphans that land on pid 1. */
export interface Reaper {
  /** Resolves when the child has ended. Call it in the turn in which the child was started. */
  ended(pid: number): Promise<ProcessExit>
}

export function startReaper(libc: Libc): Reaper {
  const awaited = new Map<number, (exit: ProcessExit) => void>()

  process.on('SIGCHLD', () => {
    // One signal may stand for many children.
    for (let child = libc.reap(); child; child = libc.reap()) {
      const resolve = awaited.get(child.pid)
      awaited.delete(child.pid)
      resolve?.(exitOf(child.status))
    }
  })

  return {
    ended(pid) {
      const { promise, resolve } = Promise.withResolvers<ProcessExit>()
      awaited.set(pid, resolve)
      return promise
    },
  }
}

/** The low seven bits are the signal that ended the process, the next byte is its exit code. */
function exitOf(status: number): ProcessExit {
  const number = status & 0x7f
  if (number === 0) return { exitCode: (status >> 8) & 0xff }
  const [name] = Object.entries(constants.signals).find(([, each]) => each === number) ?? [`SIG${number}`]
  return { exitCode: 128 + number, signal: name }
}
