import { globSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'

/** The traces of an environment on this machine, by kind, one line each. */
export interface HostTraces {
  processes: string[]
  mounts: string[]
  loopDevices: string[]
  cgroups: string[]
  directories: string[]
  /** The processes and mounts that keep its network namespace. */
  networks: string[]
}

export interface Traced {
  /** The environment's id, which the names of all its parts contain. */
  id: string
  /** The environment's programs have this word in their command lines. */
  word: string
  /** The name of its network namespace in /proc. */
  network: string | undefined
}

/** Looks for an environment at all places where this machine may keep something of it. */
export function findTraces({ id, word, network }: Traced, dataDirectory: string): HostTraces {
  const has = (text: string) => text.includes(id)
  return {
    processes: listProcesses().flatMap(pid => {
      const command = readText(`/proc/${pid}/cmdline`)
      const isOf = has(command) || command.split('\0').includes(word) || has(readText(`/proc/${pid}/cgroup`))
      // A program of the server may still erase the environment's files.
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

/** Lists the processes in a network namespace, and its mounts. */
function keepersOf(network: string): string[] {
  const processes = listProcesses().filter(pid => readLink(`/proc/${pid}/ns/net`) === network)
  const mounts = readText('/proc/self/mountinfo')
    .split('\n')
    .filter(line => line.includes(` ${network} `))
  return [...processes.map(pid => `process ${pid} is in its network`), ...mounts]
}

/** Lists the ids of the processes whose command line satisfies `isSo`. Its words end with NUL. */
export const processesWith = (isSo: (commandLine: string) => boolean): string[] =>
  listProcesses().filter(pid => isSo(readText(`/proc/${pid}/cmdline`)))

const listProcesses = (): string[] => readdirSync('/proc').filter(name => /^\d+$/.test(name))

const isAlive = (pid: string): boolean =>
  !/^State:\s+[ZX]/m.test(readText(`/proc/${pid}/status`)) && readText(`/proc/${pid}/status`) !== ''

/** Returns an empty text when the file is gone or cannot be read. */
export function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** Returns an empty text when the link is gone or cannot be read. */
export function readLink(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}
