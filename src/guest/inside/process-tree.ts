import { readdirSync, readFileSync } from 'node:fs'
import { type Libc, RLIMIT_LOCKS } from './libc.ts'

/**
 * Each command is started under its own value of a limit that Linux keeps but does not use (file locks, since 2.4.25).
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

const FIRST_MARK = 1n << 48n
const POLL_MS = 1
/** Place of the thread count behind the name in /proc/PID/stat. */
const THREADS = 17

export function createTrees(libc: Libc): Trees {
  let last = FIRST_MARK

  return {
    mark() {
      last -= 1n
      try {
        libc.lowerLimit(RLIMIT_LOCKS, last)
      } catch {
        // Root inside has lowered it for pid 1. Without marks nothing can be killed for certain: the sandbox starts anew.
        process.exit(1)
      }
      return last
    },
    confirm(pid, mark) {
      // Where root inside can lower it for pid 1, it may have done so in between. What has ended already may have left others.
      const limits = limitsOf(pid)
      if (limits === '' ? processIds().some(each => isStray(limitsOf(each), last)) : !carries(limits, mark))
        process.exit(1)
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

const carries = (limits: string, mark: bigint) => limits.includes(`Max file locks            ${mark} `)

/** Whether it has a limit that is no mark which was given. Processes that come from outside have none. */
function isStray(limits: string, last: bigint): boolean {
  const [, soft, hard] = /^Max file locks +(\d+) +(\w+) /m.exec(limits) ?? []
  return soft !== undefined && (soft !== hard || BigInt(soft) < last)
}

const processIds = () =>
  readdirSync('/proc')
    .map(Number)
    .filter(pid => pid > 0)

function alive(mark: bigint): number[] {
  return processIds().filter(pid => pid !== process.pid && carries(limitsOf(pid), mark) && !isZombie(pid))
}

/** Empty when it cannot be read. */
export function limitsOf(pid: number | 'self'): string {
  try {
    return readFileSync(`/proc/${pid}/limits`, 'latin1')
  } catch {
    return ''
  }
}

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
