import { readdirSync, readFileSync } from 'node:fs'

/** How many of Linux's units of process time make a second. */
const TICKS_PER_SECOND = 100

/** The user and system time that a process and its threads have used, without its children, in seconds. */
export function cpuSeconds(pid: number): number {
  const [, , , , , , , , , , , user, system] = statOf(pid)
  return (Number(user) + Number(system)) / TICKS_PER_SECOND
}

/** The process’s resident memory in MB. */
export const rssOf = (pid: number): number => read(pid, /^Rss: +(\d+) kB/m)
/** The same in MB, where a page that several processes share counts in parts. */
export const pssOf = (pid: number): number => read(pid, /^Pss: +(\d+) kB/m)

/** How many processes have this word in their command line, or descend from such a process, and their private memory in MB. */
export function privateMemoryOf(word: string): { processes: number; mb: number } {
  const ofProcess = (pid: number) => read(pid, /^Private_Clean: +(\d+) kB/m) + read(pid, /^Private_Dirty: +(\d+) kB/m)
  const pids = [...withDescendants(findProcesses(word))]
  return { processes: pids.length, mb: pids.reduce((sum, pid) => sum + ofProcess(pid), 0) }
}

/** The processes whose command line has this word. */
export const findProcesses = (word: string): number[] =>
  processIds().filter(pid => text(`/proc/${pid}/cmdline`).includes(word))

function withDescendants(roots: readonly number[]): Set<number> {
  const children = Map.groupBy(processIds(), pid => Number(statOf(pid)[1]))
  const found = new Set<number>()
  const add = (pid: number) => {
    if (found.has(pid)) return
    found.add(pid)
    for (const child of children.get(pid) ?? []) add(child)
  }
  for (const pid of roots) add(pid)
  return found
}

const processIds = (): number[] => readdirSync('/proc').map(Number).filter(Boolean)

/** The fields of `/proc/PID/stat` after the name, which may contain anything. */
const statOf = (pid: number): string[] => {
  const line = text(`/proc/${pid}/stat`)
  return line.slice(line.lastIndexOf(')') + 2).split(' ')
}

const read = (pid: number, pattern: RegExp): number =>
  Number(pattern.exec(text(`/proc/${pid}/smaps_rollup`))?.[1] ?? 0) / 1024

/** Returns an empty text when the process has ended, or is another user's. */
function text(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
