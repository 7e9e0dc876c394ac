import { dlopen, FFIType } from 'bun:ffi'
import { readFileSync } from 'node:fs'

const MADV_DONTNEED = 4

/**
 * Gives up the memory of the executable's code, most of which a start runs once. What is needed again comes back page by page, from
 * the file's pages that the kernel keeps. Never throws: where Linux does not do it, all stays.
 */
export function releaseCode(): void {
  try {
    const { u64, i32 } = FFIType
    const { symbols, close } = dlopen('libc.so.6', { madvise: { args: [u64, u64, i32], returns: i32 } })
    for (const { start, size } of ownCode()) symbols.madvise(start, size, MADV_DONTNEED)
    close()
  } catch {
    // It only holds more memory.
  }
}

/** The mappings of the executable that nothing can have been written to: of others, what was written would be lost. */
function ownCode(): { start: number; size: number }[] {
  const lines = readFileSync('/proc/self/maps', 'utf8').split('\n')
  return lines.flatMap(line => {
    const [, from = '', to = ''] = /^(\w+)-(\w+) r-xp .* \//.exec(line) ?? []
    if (!from || !line.endsWith(` ${process.execPath}`)) return []
    const start = Number.parseInt(from, 16)
    return [{ start, size: Number.parseInt(to, 16) - start }]
  })
}
