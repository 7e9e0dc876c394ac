import { dlopen, FFIType } from 'bun:ffi'

const SEEK_DATA = 3
const SEEK_HOLE = 4

/** Lists the parts of an open file of `size` bytes that hold data. The parts in between are holes, which read as zeros. */
export function listExtents(file: number, size: number): { at: number; length: number }[] {
  const { i32, i64 } = FFIType
  const { symbols, close } = dlopen('libc.so.6', { lseek: { args: [i32, i64, i32], returns: i64 } })
  try {
    const extents: { at: number; length: number }[] = []
    for (let end = 0; end < size; ) {
      const at = Number(symbols.lseek(file, end, SEEK_DATA))
      // Only a hole follows, or the file system has no holes.
      if (at < 0) break
      end = Math.min(size, Number(symbols.lseek(file, at, SEEK_HOLE)))
      if (end <= at) throw new Error('the file has changed while it was read')
      extents.push({ at, length: end - at })
    }
    return extents
  } finally {
    close()
  }
}
