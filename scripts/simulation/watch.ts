import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { memoryOf } from '../benchmarks/server.ts'

/** The server's use up to a moment. */
export interface Look {
  atMs: number
  cpuSeconds: number
  rssMb: number
  databaseMb: number
}

/** Returns a process's user and system time so far, which Linux counts in hundredths of a second. */
export function cpuSeconds(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
  const [user, system] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13)
  return (Number(user) + Number(system)) / 100
}

export function look(pid: number, dataDirectory: string): Look {
  const files = ['threadbox.db', 'threadbox.db-wal'].map(name =>
    statSync(join(dataDirectory, name), { throwIfNoEntry: false }),
  )
  return {
    atMs: performance.now(),
    cpuSeconds: cpuSeconds(pid),
    rssMb: memoryOf(pid, 'Rss'),
    databaseMb: files.reduce((sum, file) => sum + (file?.size ?? 0), 0) / 1024 ** 2,
  }
}
