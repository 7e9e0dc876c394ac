import { existsSync, realpathSync } from 'node:fs'
import { mkdir, readdir, readFile, readlink, rmdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Limits } from '../../../src/plugin-api/index.ts'
import { kill, listChildren } from './jail.ts'

const ROOT = '/sys/fs/cgroup'
const PARENT = 'threadbox'
const PERIOD_US = 100_000
const MIN_QUOTA_US = 1000
const REMOVE_WITHIN_MS = 10_000
const REMOVE_POLL_MS = 2

/** Processes for nsjail and the guest's threads, in addition to an environment's own. */
export const OWN_PROCESSES = 64

export type Controller = 'memory' | 'pids' | 'cpu'

const controllers: readonly Controller[] = ['memory', 'pids', 'cpu']

/** A value to be written to a file. An optional file may be missing: not every kernel has it. */
interface Setting {
  file: string
  value: string
  optional?: boolean
}

export interface Cgroups {
  /** Files that take the pids of processes that enter. */
  procsFiles: string[]
  limited: Controller[]
}

/** Whether all controllers have one tree (version 2), or one tree each (version 1). */
const isUnified = () => existsSync(join(ROOT, 'cgroup.controllers'))

/** Returns where a controller keeps the cgroup of this id. */
export const cgroupDirectory = (controller: Controller, id: string) =>
  isUnified() ? join(ROOT, PARENT, id) : join(ROOT, controller, PARENT, id)

/**
 * Makes an environment's cgroups at the root of the tree, where they outlive the server's own. A controller that cannot be
 * written is missing in `limited`. To be called as root.
 */
export async function makeCgroups(id: string, limits: Limits): Promise<Cgroups> {
  const procsFiles = new Set<string>()
  const limited: Controller[] = []
  for (const controller of controllers) {
    const settings = toSettings(controller, limits)
    if (settings.length === 0) continue
    const directory = cgroupDirectory(controller, id)
    try {
      if (isUnified()) await delegate(controller)
      await mkdir(directory, { recursive: true })
      for (const setting of settings) await apply(directory, setting)
      procsFiles.add(join(directory, 'cgroup.procs'))
      limited.push(controller)
    } catch {
      if (!procsFiles.has(join(directory, 'cgroup.procs'))) await rmdir(directory).catch(() => {})
    }
  }
  return { procsFiles: [...procsFiles], limited }
}

/**
 * Moves a jail's nsjail and its children into cgroups; processes that they start later inherit them. The kernel makes a first
 * move wait for all CPUs, some 10 ms, so this is done while the guest starts: no command of the sandbox runs before the guest
 * answers.
 */
export async function enterCgroups(nsjail: number, procsFiles: readonly string[]): Promise<void> {
  for (const procsFile of procsFiles) await writeFile(procsFile, String(nsjail))
  for (const pid of await listChildren(nsjail)) {
    for (const procsFile of procsFiles) await writeFile(procsFile, String(pid))
  }
}

/** Whether the processes of a jail that was found running are in its cgroups: a server may have died before. */
export async function areInCgroups(nsjail: number, id: string, procsFiles: readonly string[]): Promise<boolean> {
  const pids = [nsjail, ...(await listChildren(nsjail))]
  const lists = await Promise.all(pids.map(pid => readFile(`/proc/${pid}/cgroup`, 'utf8').catch(() => '')))
  const count = (list: string) => list.split('\n').filter(line => line.endsWith(`/${PARENT}/${id}`)).length
  return lists.every(list => count(list) === procsFiles.length)
}

/** Finds the controllers that can be written here, by making and removing a cgroup named after the data directory. */
export async function probeCgroups(dataDirectory: string): Promise<Controller[]> {
  const id = `${probePrefix(dataDirectory)}${process.pid}`
  try {
    return (await makeCgroups(id, { memoryMb: 64, processes: 8, cpus: 1 })).limited
  } finally {
    await removeCgroups(id)
  }
}

/** Removes the probe cgroups of processes that were killed. */
export async function removeDeadProbes(dataDirectory: string): Promise<void> {
  const prefix = probePrefix(dataDirectory)
  const parents = new Set(controllers.map(controller => dirname(cgroupDirectory(controller, prefix))))
  const names = (await Promise.all([...parents].map(parent => readdir(parent).catch(() => [])))).flat()
  for (const name of new Set(names.filter(each => each.startsWith(prefix)))) {
    if (!existsSync(`/proc/${name.slice(prefix.length)}`)) await removeCgroups(name)
  }
}

const probePrefix = (dataDirectory: string) => `probe-${Bun.hash(realpathSync(dataDirectory)).toString(36)}-`

/** Kills the processes in an environment's cgroups and removes the cgroups. Rejects when they stay busy. */
export async function removeCgroups(id: string): Promise<void> {
  for (const directory of listCgroups(id)) await remove(directory)
}

/** Kills the processes in an environment's cgroups; resolves when they have ended. Rejects when they do not. */
export async function emptyCgroups(id: string): Promise<void> {
  const deadline = performance.now() + REMOVE_WITHIN_MS
  for (const directory of listCgroups(id)) {
    while ((await readText(join(directory, 'cgroup.procs'))) !== '') {
      if (performance.now() > deadline) throw new Error(`processes in ${directory} do not end`)
      await killAll(directory)
      await Bun.sleep(REMOVE_POLL_MS)
    }
  }
}

const listCgroups = (id: string): string[] =>
  [...new Set(controllers.map(controller => cgroupDirectory(controller, id)))].filter(existsSync)

const readText = (path: string): Promise<string> => readFile(path, 'utf8').catch(() => '')

/**
 * Moves the other processes of a jail that an earlier version started, whose cgroups had the bare id as their name. Processes of
 * another data directory's jail may be in cgroups of that name too: they are not in `nsjail`'s pid namespace, and stay.
 */
export async function leaveFormerCgroups(nsjail: number, id: string, procsFiles: readonly string[]): Promise<void> {
  const inside = await readPidNamespaces(nsjail)
  for (const controller of controllers) {
    const former = cgroupDirectory(controller, id)
    const pids = await readFile(join(former, 'cgroup.procs'), 'utf8').catch(() => '')
    for (const pid of pids.split('\n').map(Number).filter(Boolean)) {
      if (!inside.has(await readPidNamespace(pid))) continue
      for (const procsFile of procsFiles) await writeFile(procsFile, String(pid)).catch(() => {})
    }
  }
  await removeFormerCgroups(id)
}

/** Removes the cgroups of an earlier version, if they are empty. */
export async function removeFormerCgroups(id: string): Promise<void> {
  for (const controller of controllers) await rmdir(cgroupDirectory(controller, id)).catch(() => {})
}

/** Reads the pid namespaces of a jail's nsjail's children. */
async function readPidNamespaces(nsjail: number): Promise<Set<string>> {
  return new Set((await Promise.all((await listChildren(nsjail)).map(readPidNamespace))).filter(name => name !== ''))
}

const readPidNamespace = (pid: number): Promise<string> => readlink(`/proc/${pid}/ns/pid`).catch(() => '')

async function remove(directory: string): Promise<void> {
  const deadline = performance.now() + REMOVE_WITHIN_MS
  for (;;) {
    try {
      await rmdir(directory)
      return
    } catch (error) {
      if (!existsSync(directory)) return
      if (performance.now() > deadline) throw error
      await killAll(directory)
      await Bun.sleep(REMOVE_POLL_MS)
    }
  }
}

async function killAll(directory: string): Promise<void> {
  const atOnce = join(directory, 'cgroup.kill')
  if (existsSync(atOnce)) return writeFile(atOnce, '1')
  const pids = await readText(join(directory, 'cgroup.procs'))
  for (const pid of pids.split('\n').map(Number).filter(Boolean)) kill(pid)
}

/** Enables a controller for the children of the root and of our parent directory. Fails in a container that shares its root. */
async function delegate(controller: Controller): Promise<void> {
  await mkdir(join(ROOT, PARENT), { recursive: true })
  for (const directory of [ROOT, join(ROOT, PARENT)]) {
    const file = join(directory, 'cgroup.subtree_control')
    const enabled = (await readFile(file, 'utf8')).trim().split(' ')
    if (!enabled.includes(controller)) await writeFile(file, `+${controller}`)
  }
}

async function apply(directory: string, { file, value, optional = false }: Setting): Promise<void> {
  const path = join(directory, file)
  if (optional && !existsSync(path)) return
  await writeFile(path, value)
}

function toSettings(controller: Controller, { memoryMb, processes, cpus }: Limits): Setting[] {
  const unified = isUnified()
  if (controller === 'memory' && memoryMb !== undefined) {
    const bytes = String(Math.round(memoryMb * 1024 * 1024))
    return unified
      ? [
          { file: 'memory.max', value: bytes },
          { file: 'memory.swap.max', value: '0', optional: true },
        ]
      : [
          { file: 'memory.limit_in_bytes', value: bytes },
          { file: 'memory.memsw.limit_in_bytes', value: bytes, optional: true },
        ]
  }
  if (controller === 'pids' && processes !== undefined) {
    return [{ file: 'pids.max', value: String(processes + OWN_PROCESSES) }]
  }
  if (controller === 'cpu' && cpus !== undefined) {
    const quota = Math.max(MIN_QUOTA_US, Math.round(cpus * PERIOD_US))
    return unified
      ? [{ file: 'cpu.max', value: `${quota} ${PERIOD_US}` }]
      : [
          { file: 'cpu.cfs_period_us', value: String(PERIOD_US) },
          { file: 'cpu.cfs_quota_us', value: String(quota) },
        ]
  }
  return []
}
