import { existsSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { isSafeId } from '../../../src/guest/host/guest-backend.ts'
import type { DiskSpace } from '../../../src/plugin-api/index.ts'

/** What every part of the backend needs to know of the server. */
export interface Host {
  dataDirectory: string
  /** Root gives each jail a range of user ids of its own; an ordinary user has one id for all. */
  isRoot: boolean
  uid: number
  gid: number
  diskSpace?: DiskSpace | undefined
  log(line: string): void
}

/** Where one environment's things are. Only `diskDirectory` holds what a jail can write. */
export interface EnvironmentPaths {
  id: string
  directory: string
  record: string
  socket: string
  config: string
  log: string
  /** Written by the launcher before it becomes nsjail: its pid, and the `key`. */
  pid: string
  /** Of the data directory. */
  key: string
  /** Name of its cgroups. */
  cgroup: string
  /** File system image that is the environment's disk, where images can be mounted. */
  image: string
  /** Directory that holds its files where they cannot. */
  diskDirectory: string
  /** Mounts of a jail that is starting, as root. Gone when it has started. */
  staging: string
}

export const stagingRoot = '/run/threadbox'

/**
 * Tells a data directory from all others on this machine, also from its copies, which have the same files: names outside of it
 * carry this. It is another one after a move to another file system; nothing of a jail lasts through that.
 */
export function getDataDirectoryKey(dataDirectory: string): string {
  const { dev, ino } = statSync(dataDirectory)
  return Bun.hash(`${dev}:${ino}`).toString(36)
}

export const stagingDirectory = (key: string, id: string) => join(stagingRoot, `${key}.${id}`)
/**
 * The real path of a data directory, which may not exist yet: the kernel names the images of loop devices by their real paths.
 */
export function realDataDirectory(path: string): string {
  if (existsSync(path)) return realpathSync(path)
  const absolute = resolve(path)
  return join(realDataDirectory(dirname(absolute)), basename(absolute))
}

export const sandboxesDirectory = (dataDirectory: string) => join(dataDirectory, 'sandboxes')
export const trashDirectory = (dataDirectory: string) => join(dataDirectory, 'trash')
export const preparedDisksDirectory = (dataDirectory: string) => join(dataDirectory, 'spare')

/** Of the base that is made of the host. */
export const hostBaseDirectory = (dataDirectory: string) => join(dataDirectory, 'base')
/** Of those that were added by name. */
export const namedBasesDirectory = (dataDirectory: string) => join(dataDirectory, 'bases')

const PROBE_PREFIX = '.probe-'
export const newProbeName = () => `${PROBE_PREFIX}${crypto.randomUUID()}`
export const isProbeName = (name: string) => name.startsWith(PROBE_PREFIX)

export function getEnvironmentPaths(dataDirectory: string, id: string): EnvironmentPaths {
  if (!isSafeId(id)) throw new Error('the environment id is not safe as a file name')
  const directory = join(sandboxesDirectory(dataDirectory), id)
  const key = getDataDirectoryKey(dataDirectory)
  return {
    id,
    directory,
    record: join(directory, 'meta.json'),
    socket: join(directory, 'guest.sock'),
    config: join(directory, 'jail.cfg'),
    log: join(directory, 'log'),
    pid: join(directory, 'pid'),
    image: join(directory, 'disk.img'),
    diskDirectory: join(directory, 'box'),
    key,
    cgroup: `${key}.${id}`,
    staging: stagingDirectory(key, id),
  }
}
