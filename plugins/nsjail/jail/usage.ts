import { readFile, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import type { EnvironmentUsage } from '../../../src/plugin-api/index.ts'
import type { EnvironmentPaths } from '../host/layout.ts'
import { type Controller, cgroupDirectory } from './cgroup.ts'
import { findJail, listChildren } from './jail.ts'

/** The unit of times in /proc, which is the same on every Linux. */
const TICK_MS = 10

/** Reads what a jail uses now from its cgroups and its disk. Empty when it does not run. */
export async function readUsage(paths: EnvironmentPaths, hasImage: boolean): Promise<EnvironmentUsage> {
  const nsjail = await findJail(paths)
  const [guest] = nsjail === undefined ? [] : await listChildren(nsjail)
  if (nsjail === undefined || guest === undefined) return {}
  const [memoryBytes, cpuMs, processes, diskBytes] = await Promise.all([
    readMemory(paths.cgroup),
    readCpu(paths.cgroup),
    readProcesses(paths.cgroup, [nsjail, guest]),
    hasImage ? readDisk(guest) : undefined,
  ])
  return {
    ...(memoryBytes !== undefined && { memoryBytes }),
    ...(cpuMs !== undefined && { cpuMs }),
    ...(processes !== undefined && { processes }),
    ...(diskBytes !== undefined && { diskBytes }),
  }
}

const read = (controller: Controller, id: string, file: string): Promise<string | undefined> =>
  readFile(join(cgroupDirectory(controller, id), file), 'utf8').catch(() => undefined)

/** Reads the number on the line with this name, or the number that is the whole text. */
function numberIn(text: string | undefined, name?: string): number | undefined {
  const line = name === undefined ? text : text?.split('\n').find(each => each.startsWith(`${name} `))
  const number = Number(name === undefined ? line : line?.slice(name.length))
  return line === undefined || !Number.isFinite(number) ? undefined : number
}

/** Memory without the file cache, which the kernel gives back when memory is short. */
async function readMemory(id: string): Promise<number | undefined> {
  const [current, former, stat] = await Promise.all([
    read('memory', id, 'memory.current'),
    read('memory', id, 'memory.usage_in_bytes'),
    read('memory', id, 'memory.stat'),
  ])
  const used = numberIn(current ?? former)
  const kept = numberIn(stat, 'total_inactive_file') ?? numberIn(stat, 'inactive_file') ?? 0
  return used === undefined ? undefined : Math.max(0, used - kept)
}

/** A tree of cgroups of version 1 may count the time elsewhere. Then this sums up the processes and those that they waited for. */
async function readCpu(id: string): Promise<number | undefined> {
  const microseconds = numberIn(await read('cpu', id, 'cpu.stat'), 'usage_usec')
  if (microseconds !== undefined) return microseconds / 1000
  const nanoseconds = numberIn(await read('cpu', id, 'cpuacct.usage'))
  if (nanoseconds !== undefined) return nanoseconds / 1_000_000
  const pids = (await read('cpu', id, 'cgroup.procs')) ?? (await read('pids', id, 'cgroup.procs'))
  if (pids === undefined) return undefined
  const times = await Promise.all(pids.split('\n').map(Number).filter(Boolean).map(readTimes))
  return times.reduce((sum, { ticks }) => sum + ticks, 0) * TICK_MS
}

/** Counts what the limit counts, without nsjail and the guest. */
async function readProcesses(id: string, own: readonly number[]): Promise<number | undefined> {
  const all = numberIn(await read('pids', id, 'pids.current'))
  if (all === undefined) return undefined
  const times = await Promise.all(own.map(readTimes))
  return Math.max(
    0,
    times.reduce((left, { threads }) => left - threads, all),
  )
}

/** Measures the file system of the image, seen through the jail's root. */
async function readDisk(guest: number): Promise<number | undefined> {
  const { blocks, bfree, bsize } = (await statfs(`/proc/${guest}/root/`).catch(() => undefined)) ?? {}
  return blocks === undefined || bfree === undefined || bsize === undefined ? undefined : (blocks - bfree) * bsize
}

/** The CPU time and the threads of a process; zero when it has ended. */
async function readTimes(pid: number): Promise<{ ticks: number; threads: number }> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  // After the name, which may have anything in it, the first field is the state: the third of all.
  const fields = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number)
  const [user = 0, system = 0, childrenUser = 0, childrenSystem = 0] = fields.slice(11, 15)
  return { ticks: user + system + childrenUser + childrenSystem, threads: fields[17] ?? 0 }
}
