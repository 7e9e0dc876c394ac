import { readdirSync, readFileSync, readlinkSync, type Stats, statSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { SERVER_LOCK } from '../db/lock.ts'
import { isDataDirectory } from './temporary/data-directory.ts'

/**
 * The data directories of the servers that run on this machine, as far as this user can see: by the kernel's list of
 * locks, so that one that was killed is not among them. Without those of `run` and `exec`.
 */
export function findServerDirectories(): string[] {
  const found = [...lockHolders()].flatMap(pid => filesOf(pid).filter(isServerLock))
  return [...new Set(found.map(path => dirname(path)))].filter(path => !isDataDirectory(basename(path))).sort()
}

/** True when a server of whatever user runs on this directory. */
export function hasServer(dataDirectory: string): boolean {
  const file = find(`${dataDirectory}/${SERVER_LOCK}`)
  // The list's device numbers are not those of every file system: the number of the file, and its name, have to do.
  return file !== undefined && locks().some(({ inode }) => inode === file.ino)
}

const locks = () =>
  read('/proc/locks')
    .split('\n')
    .flatMap(line => {
      const [, , , kind, pid, place] = line.split(/\s+/)
      return kind === 'WRITE' ? [{ pid: Number(pid), inode: Number(place?.split(':')[2]) }] : []
    })

const lockHolders = () => new Set(locks().map(({ pid }) => pid))

/** The open files of a process, by their paths; none of one that may not be looked at. */
function filesOf(pid: number): string[] {
  try {
    const directory = `/proc/${pid}/fd`
    return readdirSync(directory).flatMap(name => {
      const path = link(`${directory}/${name}`)
      // It may run under another root, where the same path is another file.
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
