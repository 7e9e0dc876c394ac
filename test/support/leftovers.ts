import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs'

/** All that the host has of these environments: processes, mounts, disks, cgroups, directories. */
export async function leftovers(...environmentIds: string[]): Promise<string[]> {
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
