import { dlopen, FFIType, type Pointer, ptr } from 'bun:ffi'

/**
 * Threads that run one function of libc. The programs use them in place of child processes: a child of Bun has only one of its threads,
 * and crashes.
 */
export interface Threads {
  /** Makes a thread that does nothing until the program ends. Returns false when Linux makes no more threads. */
  pause(): boolean
  /** Makes the system call of this number in a thread, and returns its result. Undefined when a filter killed the thread. */
  call(number: number): number | undefined
}

const { i32, u64, pointer } = FFIType

export function openThreads(): Threads {
  const { pthread_create, pthread_join } = openPthread()
  const [pause, syscall] = [addressOf('pause'), addressOf('syscall')]
  const id = new BigUint64Array(1)
  const start = (what: Pointer, argument: number) => pthread_create(ptr(id), null, what, argument) === 0
  return {
    pause: () => start(pause, 0),
    call(number) {
      // A killed thread leaves this value.
      const result = BigInt64Array.of(0n)
      if (!start(syscall, number)) throw new Error('no thread could be made')
      if (pthread_join(id[0] ?? 0n, ptr(result)) !== 0) throw new Error('the thread is lost')
      return Number(result[0]) || undefined
    },
  }
}

function openPthread() {
  const functions = {
    pthread_create: { args: [pointer, pointer, pointer, u64], returns: i32 },
    pthread_join: { args: [u64, pointer], returns: i32 },
  } as const
  try {
    return dlopen('libc.so.6', functions).symbols
  } catch {
    // Before glibc 2.34, threads and dlsym were in libraries of their own.
    return dlopen('libpthread.so.0', functions).symbols
  }
}

function openDlsym() {
  const functions = { dlsym: { args: [pointer, pointer], returns: pointer } } as const
  try {
    return dlopen('libc.so.6', functions).symbols
  } catch {
    return dlopen('libdl.so.2', functions).symbols
  }
}

/** Finds the address of a function of libc. */
function addressOf(name: string): Pointer {
  const address = openDlsym().dlsym(null, ptr(Buffer.from(`${name}\0`)))
  if (!address) throw new Error(`libc has no ${name}`)
  return Number(address) as Pointer
}
