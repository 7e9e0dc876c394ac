import { dlopen, FFIType, type Pointer, ptr, toArrayBuffer } from 'bun:ffi'
import { readFileSync } from 'node:fs'
import type { TerminalSize } from '../../plugin-api/index.ts'

/** The Linux calls that Bun has no function for. Loaded when the guest starts, never by the server. */
export interface Libc {
  /** A pipe that is closed on exec. The end that stays in this process does not block. */
  pipe(kept: 'read' | 'write'): { readEnd: number; writeEnd: number }
  /** Bytes that wait in a pipe, or in a terminal's master. */
  pendingBytes(fd: number): number
  /** The number of a terminal's master, below /dev/pts; its other end may be opened from now on. */
  unlockTerminal(master: number): number
  resizeTerminal(master: number, size: TerminalSize): void
  /** Lowers a limit of this process, soft and hard; its children inherit it. Names it by its pid: see the seccomp policy. */
  lowerLimit(resource: number, value: bigint): void
  /** Runs `start` under a lower soft limit: what it starts inherits that, this process keeps its own. */
  withSoftLimit<Result>(resource: number, value: bigint, start: () => Result): Result
  /**
   * Gives this process a saved group that is not its group: Linux then lets nobody set its limits who has no power over all
   * limits, for it wants all of one's groups to be the other's. False where there is no other group to have.
   */
  guardLimits(): boolean
  /** Nobody inside can read or trace this process, whatever its user. */
  becomeUndumpable(): void
  /** Pid of a child that has ended and was not waited for; it stays so. Undefined when there is none. */
  peekEnded(): number | undefined
  reap(pid: number): void
}

/** Places of the first and last address of the variables behind the name in /proc/PID/stat. */
const [ENV_START, ENV_END] = [47, 48]

/**
 * Overwrites a value among the variables that this process was started with, where /proc/PID/environ shows them.
 * Throws when it is still there.
 */
export function eraseVariable(name: string): void {
  const wanted = `${name}=`
  const stat = readFileSync('/proc/self/stat', 'latin1')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [start, end] = [Number(fields[ENV_START]), Number(fields[ENV_END])]
  const memory = Buffer.from(toArrayBuffer(start as Pointer, 0, end - start))
  for (let at = 0; at < memory.byteLength; ) {
    const next = memory.indexOf(0, at) + 1 || memory.byteLength + 1
    if (memory.toString('latin1', at, at + wanted.length) === wanted) memory.fill('x', at + wanted.length, next - 1)
    at = next
  }
  delete process.env[name]
  const left = readFileSync('/proc/self/environ', 'latin1').split('\0')
  if (left.some(variable => variable.startsWith(wanted) && !/=x*$/.test(variable)))
    throw new Error(`${name} stays visible`)
}

export const RLIMIT_NPROC = 6
export const RLIMIT_LOCKS = 10

/** Of nobody: programs that are started have the group that they are started with again. */
const GUARD_GROUP = 65_532
const SAME = 0xffffffff

const O_CLOEXEC = 0x80000
const O_NONBLOCK = 0x800
const F_SETFL = 4
const FIONREAD = 0x541b
const TIOCSWINSZ = 0x5414
const TIOCSPTLCK = 0x40045431
const TIOCGPTN = 0x80045430
const PR_SET_DUMPABLE = 4
const P_ALL = 0
const WNOHANG = 1
const WEXITED = 4
const WNOWAIT = 0x1000000
const SI_PID_OFFSET = 16

export function openLibc(): Libc {
  const { i32, u32, u64, pointer } = FFIType
  const { symbols } = dlopen('libc.so.6', {
    pipe2: { args: [pointer, i32], returns: i32 },
    fcntl: { args: [i32, i32, i32], returns: i32 },
    ioctl: { args: [i32, u64, pointer], returns: i32 },
    getrlimit: { args: [i32, pointer], returns: i32 },
    setrlimit: { args: [i32, pointer], returns: i32 },
    prlimit: { args: [i32, i32, pointer, pointer], returns: i32 },
    setresgid: { args: [u32, u32, u32], returns: i32 },
    prctl: { args: [i32, u64, u64, u64, u64], returns: i32 },
    waitid: { args: [i32, u32, pointer, i32], returns: i32 },
    waitpid: { args: [i32, pointer, i32], returns: i32 },
  })
  const ends = new Int32Array(2)
  const count = new Int32Array(1)
  const limit = new BigUint64Array(2)
  const info = new DataView(new ArrayBuffer(128))

  return {
    pipe(kept) {
      if (symbols.pipe2(ptr(ends), O_CLOEXEC) !== 0) throw new Error('no pipe could be made')
      const [readEnd = -1, writeEnd = -1] = ends
      symbols.fcntl(kept === 'read' ? readEnd : writeEnd, F_SETFL, O_NONBLOCK)
      return { readEnd, writeEnd }
    },
    pendingBytes(fd) {
      return symbols.ioctl(fd, FIONREAD, ptr(count)) === 0 ? (count[0] ?? 0) : 0
    },
    unlockTerminal(master) {
      count[0] = 0
      if (symbols.ioctl(master, TIOCSPTLCK, ptr(count)) !== 0 || symbols.ioctl(master, TIOCGPTN, ptr(count)) !== 0)
        throw new Error('not a terminal')
      return count[0]
    },
    resizeTerminal(master, { columns, rows }) {
      symbols.ioctl(master, TIOCSWINSZ, ptr(Uint16Array.of(rows, columns, 0, 0)))
    },
    lowerLimit(resource, value) {
      limit.fill(value)
      if (symbols.prlimit(process.pid, resource, ptr(limit), null) !== 0)
        throw new Error('a limit could not be lowered')
    },
    withSoftLimit(resource, value, start) {
      const own = new BigUint64Array(2)
      symbols.getrlimit(resource, ptr(own))
      limit.set(own)
      if (value < (own[0] ?? 0n)) limit[0] = value
      symbols.setrlimit(resource, ptr(limit))
      try {
        return start()
      } finally {
        symbols.setrlimit(resource, ptr(own))
      }
    },
    guardLimits() {
      return symbols.setresgid(SAME, SAME, GUARD_GROUP) === 0
    },
    becomeUndumpable() {
      symbols.prctl(PR_SET_DUMPABLE, 0n, 0n, 0n, 0n)
    },
    peekEnded() {
      info.setInt32(SI_PID_OFFSET, 0)
      if (symbols.waitid(P_ALL, 0, ptr(info.buffer), WEXITED | WNOHANG | WNOWAIT) !== 0) return undefined
      return info.getInt32(SI_PID_OFFSET, true) || undefined
    },
    reap(pid) {
      symbols.waitpid(pid, null, WNOHANG)
    },
  }
}
