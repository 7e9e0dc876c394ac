import { globSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** What this machine has of an environment, by kind, a line each. */
export interface HostTraces {
  processes: string[]
  mounts: string[]
  loopDevices: string[]
  cgroups: string[]
  directories: string[]
  /** What keeps its network namespace. */
  networks: string[]
}

export interface Traced {
  /** The environment's, which is in the names of all that it has. */
  id: string
  /** What its programs have in their command lines. */
  word: string
  /** What /proc calls its network namespace. */
  network: string | undefined
}

/** Looks for an environment wherever this machine may keep something of it. */
export function findTraces({ id, word, network }: Traced, dataDirectory: string): HostTraces {
  const has = (text: string) => text.includes(id)
  return {
    processes: listProcesses().flatMap(pid => {
      const command = readText(`/proc/${pid}/cmdline`)
      const isOf = has(command) || command.split('\0').includes(word) || has(readText(`/proc/${pid}/cgroup`))
      // A program of the server's may still erase its files.
      return isOf && !command.includes('/trash/') && isAlive(pid)
        ? [`process ${pid}: ${command.replaceAll('\0', ' ').trim()}`]
        : []
    }),
    mounts: readText('/proc/self/mountinfo').split('\n').filter(has),
    loopDevices: globSync('/sys/block/loop*/loop/backing_file').flatMap(path => {
      const file = readText(path)
      return has(file) ? [`${path}: ${file.trim()}`] : []
    }),
    cgroups: globSync('/sys/fs/cgroup/{,*/}threadbox/*').filter(has),
    directories: [...globSync('/run/threadbox/*'), ...globSync(`${dataDirectory}/{sandboxes,trash}/*`)].filter(has),
    networks: network === undefined ? [] : keepersOf(network),
  }
}

/** Processes in a network namespace, and mounts of it. */
function keepersOf(network: string): string[] {
  const processes = listProcesses().filter(pid => readLink(`/proc/${pid}/ns/net`) === network)
  const mounts = readText('/proc/self/mountinfo')
    .split('\n')
    .filter(line => line.includes(` ${network} `))
  return [...processes.map(pid => `process ${pid} is in its network`), ...mounts]
}

/** The ids of processes whose command line is so; its words end with NUL. */
export const processesWith = (isSo: (commandLine: string) => boolean): string[] =>
  listProcesses().filter(pid => isSo(readText(`/proc/${pid}/cmdline`)))

const listProcesses = (): string[] => readdirSync('/proc').filter(name => /^\d+$/.test(name))

const isAlive = (pid: string): boolean =>
  !/^State:\s+[ZX]/m.test(readText(`/proc/${pid}/status`)) && readText(`/proc/${pid}/status`) !== ''

/** Empty for what is gone, or not to be read. */
export function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** Likewise. */
export function readLink(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}
