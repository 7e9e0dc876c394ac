import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs'

const SETTLES_WITHIN_MS = 10_000

/**
 * Lists all that the host still has of destroyed environments. Their processes are gone by then; mounts, disks and cgroups get a moment
 * to go.
 */
export async function leftovers(...environmentIds: string[]): Promise<string[]> {
  const deadline = performance.now() + SETTLES_WITHIN_MS
  for (;;) {
    const left = tracesOf(...environmentIds)
    // A program of the server may still erase the files.
    const isSettling = left.length > 0 && !left.some(line => line.startsWith('process') && !line.includes('/trash/'))
    if (!isSettling || performance.now() > deadline) return left
    await Bun.sleep(5)
  }
}

/** Lists all that the host has of these environments: processes, mounts, disks, cgroups, directories. */
export function tracesOf(...environmentIds: string[]): string[] {
  if (environmentIds.length === 0) return []
  const pattern = new RegExp(environmentIds.join('|'))
  return [
    ...processesWith(pattern),
    ...readText('/proc/self/mountinfo')
      .split('\n')
      .filter(line => pattern.test(line)),
    ...globSync('/sys/block/loop*/loop/backing_file')
      .map(readText)
      .filter(line => pattern.test(line)),
    ...globSync('/sys/fs/cgroup/{,*/}threadbox/*').filter(path => pattern.test(path)),
    ...globSync(['/run/threadbox/*', '/tmp/threadbox-*/sandboxes/*']).filter(path => pattern.test(path)),
  ]
}

/** A jail's own processes have its mounts; nsjail has its name in its arguments. */
function processesWith(pattern: RegExp): string[] {
  return processIds().flatMap(pid => {
    const traces = ['cmdline', 'mountinfo', 'cgroup'].map(name => readText(`/proc/${pid}/${name}`))
    return traces.some(trace => pattern.test(trace)) && existsSync(`/proc/${pid}/exe`)
      ? [`process ${pid}: ${traces[0]?.replaceAll('\0', ' ')}`]
      : []
  })
}

/** Processes of the host, and of every sandbox, whose command line has this word. */
export const processesNamed = (word: string): number[] =>
  processIds().filter(pid => readText(`/proc/${pid}/cmdline`).split('\0').includes(word))

export const processIds = (): number[] => readdirSync('/proc').map(Number).filter(Boolean)

export function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
