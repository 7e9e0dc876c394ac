import { dlopen, FFIType, type Pointer, ptr } from 'bun:ffi'

/**
 * Threads that run one function of libc. They are made in place of children: a child of Bun's has one of its threads, and crashes in the
 * next line of its program.
 */
export interface Threads {
  /** Makes one that does nothing until the program ends. False when Linux makes no more. */
  pause(): boolean
  /** Makes the system call of this number in a thread, and gives its result. Undefined when a filter killed the thread for it. */
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
      // What a thread that was killed leaves.
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
    // Before glibc 2.34 they were in a library of their own, as was dlsym.
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

/** Where a function of libc is. */
function addressOf(name: string): Pointer {
  const address = openDlsym().dlsym(null, ptr(Buffer.from(`${name}\0`)))
  if (!address) throw new Error(`libc has no ${name}`)
  return Number(address) as Pointer
}
