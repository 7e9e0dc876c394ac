import { dlopen, FFIType, read } from 'bun:ffi'
import { constants as system } from 'node:os'

/** A Linux call that failed; `code` is the name of its errno. */
export class LinuxError extends Error {
  override readonly name = 'LinuxError'

  constructor(
    call: string,
    readonly code: string,
  ) {
    super(`${call}: ${code}`)
  }
}

/** Opens libc at the first call: a server that runs no jail never does. */
export const libc = lazy(() => {
  const { i32, i64, u32, u64, pointer } = FFIType
  return dlopen('libc.so.6', {
    syscall: { args: [i64, i64, i64, i64, i64, i64], returns: i64 },
    mount: { args: [pointer, pointer, pointer, u64, pointer], returns: i32 },
    umount2: { args: [pointer, i32], returns: i32 },
    socket: { args: [i32, i32, i32], returns: i32 },
    bind: { args: [i32, pointer, u32], returns: i32 },
    listen: { args: [i32, i32], returns: i32 },
    poll: { args: [pointer, u64, i32], returns: i32 },
    ioctl: { args: [i32, u64, i64], returns: i32 },
    fcntl: { args: [i32, i32, i64], returns: i32 },
    lseek: { args: [i32, i64, i32], returns: i64 },
    clone: { args: [pointer, pointer, i32, pointer], returns: i32 },
    waitpid: { args: [i32, pointer, i32], returns: i32 },
    dlsym: { args: [i64, pointer], returns: pointer },
    __errno_location: { args: [], returns: pointer },
  }).symbols
})

function lazy<T extends object>(open: () => T): () => T {
  let opened: T | undefined
  return () => {
    opened ??= open()
    return opened
  }
}

/** The result of a call. Throws LinuxError when it is negative. */
export function checked(call: string, result: number | bigint): number {
  if (result >= 0) return Number(result)
  const location = libc().__errno_location()
  const number = location ? read.i32(location) : 0
  const code = Object.entries(system.errno).find(entry => entry[1] === number)?.[0] ?? `errno ${number}`
  throw new LinuxError(call, code)
}

/** Returns a string in C's form. */
export const text = (value: string): Buffer => Buffer.from(`${value}\0`)
