import { dlopen, FFIType, ptr, read } from 'bun:ffi'
import { constants } from 'node:os'
import { type CallName, numberOf } from './call-numbers.ts'

/** A system call failed. `code` is the name of its errno, such as `EPERM`. */
export class CallError extends Error {
  override readonly name = 'CallError'

  constructor(
    readonly call: string,
    readonly code: string,
  ) {
    super(`${call}: ${code}`)
  }
}

/** A text is passed as a C string, bytes as a pointer to them, and null as the null pointer. */
export type CallArgument = number | bigint | string | NodeJS.TypedArray | null

const libc = (() => {
  let opened: ReturnType<typeof open> | undefined
  return () => {
    opened ??= open()
    return opened
  }
})()

function open() {
  const { i64, pointer } = FFIType
  const { symbols } = dlopen('libc.so.6', {
    syscall: { args: [i64, i64, i64, i64, i64, i64, i64], returns: i64 },
    __errno_location: { args: [], returns: pointer },
  })
  const errno = symbols.__errno_location()
  if (!errno) throw new Error('libc has no errno')
  return { call: symbols.syscall, errno }
}

/**
 * Makes a system call and returns its result. Throws CallError when it fails, and ENOSYS for a call that this architecture does not have.
 * The call may write to the given bytes.
 */
export function syscall(name: CallName, ...args: readonly CallArgument[]): number {
  const number = numberOf(name)
  if (number === undefined) throw new CallError(name, 'ENOSYS')
  /** The C strings must stay in memory until the call has ended. */
  const held = args.map(each => (typeof each === 'string' ? Buffer.from(`${each}\0`) : each))
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0] = held.map(toWord)
  const { call, errno } = libc()
  const result = Number(call(number, a, b, c, d, e, f))
  const code = result < 0 ? read.i32(errno) : 0
  if (held.length > 6) throw new Error(`${name}: a system call has at most six arguments`)
  if (result >= 0) return result
  throw new CallError(name, nameOfErrno(code))
}

function toWord(argument: number | bigint | NodeJS.TypedArray | null): number | bigint {
  if (argument === null) return 0
  if (typeof argument === 'object') return argument.byteLength === 0 ? 0 : Number(ptr(argument))
  return typeof argument === 'bigint' ? BigInt.asIntN(64, argument) : argument
}

/** Node has no name for this errno. */
const ESOCKTNOSUPPORT = 94

/** Returns the errno's name, such as `EPERM`. */
export function nameOfErrno(number: number): string {
  if (number === ESOCKTNOSUPPORT) return 'ESOCKTNOSUPPORT'
  return Object.entries(constants.errno).find(entry => entry[1] === number)?.[0] ?? `errno ${number}`
}
