import { readdirSync, readFileSync } from 'node:fs'
import type { Libc } from './libc.ts'
import { FIRST_MARK, limitsOf, type MarkLimit } from './mark-limit.ts'

/**
 * Each command is started under its own value of a limit that the kernel keeps but does not use (see mark-limit.ts).
 * Children inherit it, without CAP_SYS_RESOURCE nobody can raise it again, and who confines the guest must keep all but
 * pid 1 from lowering it: so every descendant is found, whatever session, parent, user or environment it fled to.
 */
export interface Trees {
  /** Marks what this process starts next, and nothing before. Start the command in the same turn. */
  mark(): bigint
  /** To be called with each process that was started, in the same turn. */
  confirm(pid: number, mark: bigint): void
  /** SIGKILL to all that carry the mark; resolves when none is alive. */
  kill(mark: bigint): Promise<void>
}

const POLL_MS = 1
/** Place of the thread count behind the name in /proc/PID/stat. */
const THREADS = 17
/** The width of a limit's name in /proc/PID/limits. */
const TITLE_WIDTH = 26

export function createTrees(libc: Libc, { resource, line, isShared }: MarkLimit): Trees {
  let last = FIRST_MARK

  const carries = (limits: string, mark: bigint) => limits.includes(`${line.padEnd(TITLE_WIDTH)}${mark} `)

  /** True when a process has a value of this limit that was not given as a mark. Processes that come from outside have none. */
  const isStray = (limits: string) => {
    const row = limits.split('\n').find(each => each.startsWith(line)) ?? ''
    const [, soft, hard] = /^ +(\d+) +(\w+) /.exec(row.slice(line.length)) ?? []
    return soft !== undefined && (soft !== hard || BigInt(soft) < last)
  }

  const alive = (mark: bigint) =>
    processIds().filter(pid => pid !== process.pid && carries(limitsOf(pid), mark) && !isZombie(pid))

  const next = () => {
    last -= 1n
    try {
      libc.lowerLimit(resource, last)
    } catch {
      // Root inside has lowered the limit for pid 1. Without marks nothing can be killed for certain, so that the sandbox starts again.
      process.exit(1)
    }
    return last
  }

  return {
    mark: next,
    confirm(pid, mark) {
      // Where root inside can lower the limit for pid 1, it may have done so in between.
      if (libc.softLimit(pid, resource) !== mark) {
        // The process already belongs to another user, or has ended and may have left others.
        const limits = limitsOf(pid)
        if (limits === '' ? processIds().some(each => isStray(limitsOf(each))) : !carries(limits, mark)) process.exit(1)
      }
      // A process from outside must not go with the command: its mark is now one that no command has.
      if (isShared) next()
    },
    async kill(mark) {
      // Stopped first: a tree that forks as fast as it dies would never end.
      for (const pid of alive(mark)) signal(pid, 'SIGSTOP')
      for (let pids = alive(mark); pids.length > 0; pids = alive(mark)) {
        for (const pid of pids) signal(pid, 'SIGKILL')
        await Bun.sleep(POLL_MS)
      }
    },
  }
}

const processIds = () =>
  readdirSync('/proc')
    .map(Number)
    .filter(pid => pid > 0)

/** A process whose first thread has ended looks like one while its other threads go on. */
function isZombie(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return (fields[0] === 'Z' || fields[0] === 'X') && Number(fields[THREADS]) <= 1
  } catch {
    return true
  }
}

/** To a process, or to the group of a negative number. Nothing when it has ended. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch {
    // It has ended meanwhile.
  }
}
