import { dlopen, FFIType, type Pointer, ptr, toArrayBuffer } from 'bun:ffi'
import { readFileSync } from 'node:fs'
import type { TerminalSize } from '../../plugin-api/index.ts'

/** The Linux calls that Bun has no function for. Loaded when the guest starts, never by the server. */
export interface Libc {
  /** A pipe that is closed on exec. The end that stays in this process does not block. */
  pipe(kept: 'read' | 'write'): { readEnd: number; writeEnd: number }
  /** Bytes that wait in a pipe, or in a terminal's master. */
  pendingBytes(fd: number): number
  /** Lets more bytes wait in a pipe. Nothing changes when Linux refuses, or when the descriptor is not a pipe. */
  widenPipe(fd: number): void
  /** The number of a terminal's master, below /dev/pts; its other end may be opened from now on. */
  unlockTerminal(master: number): number
  resizeTerminal(master: number, size: TerminalSize): void
  /**
   * Reads up to 64 KiB that wait in a pipe that does not block. The result is empty at the pipe's end, and undefined when nothing waits.
   */
  read(fd: number): Buffer | undefined
  /** The soft limit of a child; undefined when it may not be read. */
  softLimit(pid: number, resource: number): bigint | undefined
  /** Lowers a limit of this process, soft and hard; its children inherit it. Names it by its pid: see the seccomp policy. */
  lowerLimit(resource: number, value: bigint): void
  /** True when this process may not set a limit to the value that it has: nothing inside can change that limit then. */
  isLimitKept(resource: number): boolean
  /** Runs `start` under a lower soft limit: what it starts inherits that, this process keeps its own. */
  withSoftLimit<Result>(resource: number, value: bigint, start: () => Result): Result
  /**
   * Gives this process a saved group that is not its group: Linux then lets nobody set its limits who has no power over all
   * limits, for it wants all of one's groups to be the other's. False where there is no other group to have.
   */
  guardLimits(): boolean
  /** Nobody inside can read or trace this process, whatever its user. */
  becomeUndumpable(): void
  /** Waits for a child that has ended, and returns its status as waitpid gives it. Returns undefined when no child has ended. */
  reap(): { pid: number; status: number } | undefined
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
  const memory = start > 0 ? Buffer.from(toArrayBuffer(start as Pointer, 0, end - start)) : entryOf(name)
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

/** The variable's place in memory, on a kernel such as gVisor's that does not tell where all variables are. */
function entryOf(name: string): Buffer {
  const { getenv } = dlopen('libc.so.6', { getenv: { args: [FFIType.pointer], returns: FFIType.pointer } }).symbols
  const value = getenv(ptr(Buffer.from(`${name}\0`)))
  if (!value) return Buffer.alloc(0)
  const length = Buffer.byteLength(process.env[name] ?? '')
  const begin = name.length + 1
  return Buffer.from(toArrayBuffer((Number(value) - begin) as Pointer, 0, begin + length + 1))
}

export const RLIMIT_RSS = 5
export const RLIMIT_NPROC = 6
export const RLIMIT_LOCKS = 10

/** Of nobody: programs that are started have the group that they are started with again. */
const GUARD_GROUP = 65_532
const SAME = 0xffffffff

const O_CLOEXEC = 0x80000
const O_NONBLOCK = 0x800
const F_SETFL = 4
const F_SETPIPE_SZ = 1031
const FIONREAD = 0x541b
const TIOCSWINSZ = 0x5414
const TIOCSPTLCK = 0x40045431
const TIOCGPTN = 0x80045430
const PR_SET_DUMPABLE = 4
const ANY = -1
const PIECE_BYTES = 64 * 1024
/** Linux does not allow an ordinary user more. */
const WIDE_PIPE_BYTES = 1024 * 1024
const WNOHANG = 1

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
    read: { args: [i32, pointer, u64], returns: i32 },
    waitpid: { args: [i32, pointer, i32], returns: i32 },
  })
  const ends = new Int32Array(2)
  const count = new Int32Array(1)
  const limit = new BigUint64Array(2)
  const status = new Int32Array(1)
  const piece = Buffer.allocUnsafeSlow(PIECE_BYTES)

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
    widenPipe(fd) {
      symbols.fcntl(fd, F_SETPIPE_SZ, WIDE_PIPE_BYTES)
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
    read(fd) {
      const length = symbols.read(fd, ptr(piece), piece.byteLength)
      return length < 0 ? undefined : Buffer.from(piece.subarray(0, length))
    },
    softLimit: (pid, resource) => (symbols.prlimit(pid, resource, null, ptr(limit)) === 0 ? limit[0] : undefined),
    lowerLimit(resource, value) {
      limit.fill(value)
      if (symbols.prlimit(process.pid, resource, ptr(limit), null) !== 0)
        throw new Error('a limit could not be lowered')
    },
    isLimitKept(resource) {
      return symbols.getrlimit(resource, ptr(limit)) === 0 && symbols.setrlimit(resource, ptr(limit)) !== 0
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
    reap() {
      const pid = symbols.waitpid(ANY, ptr(status), WNOHANG)
      return pid > 0 ? { pid, status: status[0] ?? 0 } : undefined
    },
  }
}
