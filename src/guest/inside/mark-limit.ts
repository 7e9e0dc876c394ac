import { readFileSync } from 'node:fs'
import { type Libc, RLIMIT_LOCKS, RLIMIT_RSS } from './libc.ts'

/** A limit whose values can mark processes: the kernel keeps it, passes it on to children, and does not use it. */
export interface MarkLimit {
  /** The limit's name for setrlimit. */
  resource: number
  /** The limit's name in /proc/PID/limits. */
  line: string
  /** Processes that come from outside, such as the bridge, have the limits of process 1, which change with it. */
  isShared: boolean
}

/** All marks are below this value. */
export const FIRST_MARK = 1n << 48n

/** On Linux the mark is the limit of file locks, which Linux has not used since 2.4.25. */
const fileLocks: MarkLimit = { resource: RLIMIT_LOCKS, line: 'Max file locks', isShared: false }
/**
 * On gVisor the mark is the limit of the resident set, because gVisor lets nobody change the other limit. Linux has not used this one since
 * 2.4.30; hardly any program sets it.
 */
const residentSet: MarkLimit = { resource: RLIMIT_RSS, line: 'Max resident set', isShared: true }

/**
 * Finds a limit that can be the mark here, and sets it up. When that is not file locks and nothing keeps commands from changing it, this
 * throws an error that says what the operator can do.
 */
export function findMarkLimit(libc: Libc): MarkLimit {
  if (begins(libc, fileLocks)) return fileLocks
  if (!begins(libc, residentSet) || !limitsOf('self').includes(residentSet.line))
    throw new Error('this kernel has no limit that could mark processes: gVisor has one since 2023')
  if (libc.isLimitKept(residentSet.resource)) return residentSet
  throw new Error(
    'the seccomp profile is not in force, under which a process can hide from the kill of its tree: gVisor needs the argument --oci-seccomp in the runtime of the engine, and the server --docker-runtime with its name',
  )
}

function begins(libc: Libc, { resource }: MarkLimit): boolean {
  try {
    libc.lowerLimit(resource, FIRST_MARK)
    return true
  } catch {
    return false
  }
}

/** Returns an empty text when the limits cannot be read. */
export function limitsOf(pid: number | 'self'): string {
  try {
    return readFileSync(`/proc/${pid}/limits`, 'latin1')
  } catch {
    return ''
  }
}
