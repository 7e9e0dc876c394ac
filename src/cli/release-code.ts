import { dlopen, FFIType } from 'bun:ffi'
import { readFileSync } from 'node:fs'

const MADV_DONTNEED = 4

/**
 * Releases the memory of the executable's code, most of which only a start runs. Code that is needed again is loaded page by
 * page, from the kernel's cache of the file. Never throws: where Linux refuses, the memory stays.
 */
export function releaseCode(): void {
  try {
    const { u64, i32 } = FFIType
    const { symbols, close } = dlopen('libc.so.6', { madvise: { args: [u64, u64, i32], returns: i32 } })
    for (const { start, size } of ownCode()) symbols.madvise(start, size, MADV_DONTNEED)
    close()
  } catch {
    // Then the process only uses more memory.
  }
}

/** The mappings of the executable that cannot have been written to: in others, releasing would lose what was written. */
function ownCode(): { start: number; size: number }[] {
  const lines = readFileSync('/proc/self/maps', 'utf8').split('\n')
  return lines.flatMap(line => {
    const [, from = '', to = ''] = /^(\w+)-(\w+) r-xp .* \//.exec(line) ?? []
    if (!from || !line.endsWith(` ${process.execPath}`)) return []
    const start = Number.parseInt(from, 16)
    return [{ start, size: Number.parseInt(to, 16) - start }]
  })
}
