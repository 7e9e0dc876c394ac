import { readdirSync, readFileSync, readlinkSync, type Stats, statSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { SERVER_LOCK } from '../db/lock.ts'
import { isDataDirectory } from './temporary/data-directory.ts'

/**
 * The data directories of the servers that run on this machine, as far as this user can see them. It reads the kernel's
 * list of locks, which has no entry of a killed server. Without the directories of `run` and `exec`.
 */
export function findServerDirectories(): string[] {
  const found = [...lockHolders()].flatMap(pid => listOpenFiles(pid).filter(isServerLock))
  return [...new Set(found.map(path => dirname(path)))].filter(path => !isDataDirectory(basename(path))).sort()
}

/** True when a server of any user runs on this directory. */
export const hasServer = (dataDirectory: string): boolean => findServerProcess(dataDirectory) !== undefined

/** Kills the server that runs on this directory, if one does. The parent of this process is not killed. */
export function killServer(dataDirectory: string): void {
  const pid = findServerProcess(dataDirectory)
  // A server in another pid namespace has no number here.
  if (pid && pid !== process.ppid) process.kill(pid, 'SIGKILL')
}

/** The pid of the server that runs on this directory. It is 0 when it has no number here, as in another pid namespace. */
export function findServerProcess(dataDirectory: string): number | undefined {
  const file = find(`${dataDirectory}/${SERVER_LOCK}`)
  // The device numbers in this list differ from those of stat on some file systems, so inode and file name must suffice.
  return file && locks().find(({ inode }) => inode === file.ino)?.pid
}

const locks = () =>
  read('/proc/locks')
    .split('\n')
    .flatMap(line => {
      const [, , , kind, pid, place] = line.split(/\s+/)
      return kind === 'WRITE' ? [{ pid: Number(pid), inode: Number(place?.split(':')[2]) }] : []
    })

const lockHolders = () => new Set(locks().map(({ pid }) => pid))

/** The paths of a process's open files; empty for a process of another user. */
function listOpenFiles(pid: number): string[] {
  try {
    const directory = `/proc/${pid}/fd`
    return readdirSync(directory).flatMap(name => {
      const path = link(`${directory}/${name}`)
      // The process may have another root, where the same path is another file.
      return path !== undefined && find(path)?.ino === find(`${directory}/${name}`)?.ino ? [path] : []
    })
  } catch {
    return []
  }
}

const isServerLock = (path: string): boolean => basename(path) === SERVER_LOCK

function find(path: string): Stats | undefined {
  try {
    return statSync(path)
  } catch {
    return undefined
  }
}

function link(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
