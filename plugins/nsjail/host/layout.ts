import { existsSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { isSafeId } from '../../../src/guest/host/guest-backend.ts'
import type { DiskSpace } from '../../../src/plugin-api/index.ts'

/** The server's user and data directory, for every part of the backend. */
export interface Host {
  dataDirectory: string
  /** Root gives each jail a range of user ids of its own; an ordinary user has one id for all. */
  isRoot: boolean
  uid: number
  gid: number
  diskSpace?: DiskSpace | undefined
  /** The greatest number of snapshots that may lie below each other. */
  maxLayers: number
  log(line: string): void
}

/** Paths and names of one environment. A jail can write only to `diskDirectory` or `image`. */
export interface EnvironmentPaths {
  id: string
  directory: string
  record: string
  socket: string
  config: string
  log: string
  /** This file has the pid of nsjail, and the `key`. */
  pid: string
  key: string
  /** This file exists while the environment is a spare. */
  spare: string
  cgroup: string
  /** File system image that is the environment's disk, if images can be mounted here. */
  image: string
  /** Directory that holds its files if images cannot be mounted. */
  diskDirectory: string
  /** Directory of the mounts while root starts the jail. It is removed when the jail has started. */
  staging: string
}

export const stagingRoot = '/run/threadbox'

/**
 * A key that no other data directory on this machine has, not even a copy with the same files. Names outside of the data directory
 * carry it. It changes with a move to another file system, which no jail survives.
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

/** The name in the trash for an environment's files. */
export const newTrashName = (id: string) => `${id}.${crypto.randomUUID()}`
export const environmentOfTrash = (name: string) => name.split('.')[0] ?? ''

export const preparedDisksDirectory = (dataDirectory: string) => join(dataDirectory, 'spare')

export const hostBaseDirectory = (dataDirectory: string) => join(dataDirectory, 'base')
export const namedBasesDirectory = (dataDirectory: string) => join(dataDirectory, 'bases')

/** The directory with the files of a snapshot. Nothing in it changes once it is there. */
export interface SnapshotPaths {
  id: string
  directory: string
  record: string
  /** The disk, which is an image or a directory. */
  image: string
  diskDirectory: string
}

export const snapshotsDirectory = (dataDirectory: string) => join(dataDirectory, 'snapshots')

const DRAFT_PREFIX = '.draft-'
export const newSnapshotDraft = (dataDirectory: string) =>
  join(snapshotsDirectory(dataDirectory), `${DRAFT_PREFIX}${crypto.randomUUID()}`)
export const isSnapshotDraft = (name: string) => name.startsWith(DRAFT_PREFIX)

export function getSnapshotPaths(dataDirectory: string, id: string): SnapshotPaths {
  if (!isSafeId(id)) throw new Error('the id of the snapshot is not safe as a file name')
  return toSnapshotPaths(id, join(snapshotsDirectory(dataDirectory), id))
}

export const toSnapshotPaths = (id: string, directory: string): SnapshotPaths => ({
  id,
  directory,
  record: join(directory, 'meta.json'),
  image: join(directory, 'disk.img'),
  diskDirectory: join(directory, 'box'),
})

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
    spare: join(directory, 'spare'),
    image: join(directory, 'disk.img'),
    diskDirectory: join(directory, 'box'),
    key,
    cgroup: `${key}.${id}`,
    staging: stagingDirectory(key, id),
  }
}
