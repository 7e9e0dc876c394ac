import { heapStats } from 'bun:jsc'
import { readFileSync, writeFileSync } from 'node:fs'

/**
 * The most memory that a process had at one time while work was done, in bytes beyond what it had before. The kernel keeps the
 * peak, so no sample misses it. It says something only of a process that does nothing else: of a server of its own, not of the
 * process that runs the tests.
 */
export async function peakGrowth(pid: number, work: () => Promise<unknown>): Promise<number> {
  writeFileSync(`/proc/${pid}/clear_refs`, '5')
  const before = memoryOf(pid, 'VmRSS')
  await work()
  return memoryOf(pid, 'VmHWM') - before
}

function memoryOf(pid: number, field: 'VmRSS' | 'VmHWM'): number {
  const [, kb] = new RegExp(`^${field}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  if (kb === undefined) throw new Error(`process ${pid} has no ${field}`)
  return Number(kb) * 1024
}

/** What this process's values take, in bytes, without what waits to be collected. It sees no buffers of the kernel or of sockets. */
export function bytesInUse(): number {
  Bun.gc(true)
  const { heapSize, extraMemorySize } = heapStats()
  return heapSize + extraMemorySize
}
