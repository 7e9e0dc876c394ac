import { dlopen, FFIType, ptr } from 'bun:ffi'
import { existsSync } from 'node:fs'

const RLIMIT_NOFILE = 7

/**
 * Lets this process open this many more descriptors until the result is called. With 0 it cannot even open one in place of a closed one.
 */
export function exhaustDescriptors(free = 0): () => void {
  const { i32, pointer } = FFIType
  const { symbols } = dlopen('libc.so.6', { prlimit: { args: [i32, i32, pointer, pointer], returns: i32 } })
  const before = new BigUint64Array(2)
  const set = (to: BigUint64Array | null, from: BigUint64Array | null) => {
    if (symbols.prlimit(0, RLIMIT_NOFILE, to && ptr(to), from && ptr(from)) !== 0) throw new Error('prlimit failed')
  }
  set(null, before)
  let end = 0
  for (let left = free; left > 0; end++) if (!existsSync(`/proc/self/fd/${end}`)) left--
  set(BigUint64Array.of(BigInt(end), before[1] ?? 0n), null)
  return () => set(before, null)
}
