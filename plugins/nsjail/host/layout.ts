import { statSync } from 'node:fs'
import { join } from 'node:path'
import type { DiskSpace } from '../../../src/plugin-api/index.ts'

/** What every part of the backend needs to know of the server. */
export interface Ground {
  dataDirectory: string
  /** Root gives each jail a range of user ids of its own; an ordinary user has one id for all. */
  root: boolean
  uid: number
  gid: number
  diskSpace?: DiskSpace | undefined
  log(line: string): void
}

/** Where one environment's things are. Only `box` holds what a jail can write. */
export interface Place {
  id: string
  directory: string
  meta: string
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
  box: string
  /** Mounts of a jail that is starting, as root. Gone when it has started. */
  stage: string
}

export const stagesDirectory = '/run/threadbox'

/**
 * Tells a data directory from all others on this machine, also from its copies, which have the same files: names outside of it
 * carry this. It is another one after a move to another file system; nothing of a jail lasts through that.
 */
export function keyOf(dataDirectory: string): string {
  const { dev, ino } = statSync(dataDirectory)
  return Bun.hash(`${dev}:${ino}`).toString(36)
}

export const stageOf = (key: string, id: string) => join(stagesDirectory, `${key}.${id}`)
export const sandboxesDirectory = (dataDirectory: string) => join(dataDirectory, 'sandboxes')
export const trashDirectory = (dataDirectory: string) => join(dataDirectory, 'trash')
export const spareDirectory = (dataDirectory: string) => join(dataDirectory, 'spare')

/** Of the base that is made of the host. */
export const baseDirectory = (dataDirectory: string) => join(dataDirectory, 'base')
/** Of those that were added by name. */
export const basesDirectory = (dataDirectory: string) => join(dataDirectory, 'bases')

const PROBE_PREFIX = '.probe-'
export const newProbe = () => `${PROBE_PREFIX}${crypto.randomUUID()}`
export const isProbe = (name: string) => name.startsWith(PROBE_PREFIX)

/** Ids become names of files, mounts and cgroups. */
export const isSafeId = (id: string) => /^[A-Za-z0-9][A-Za-z0-9_-]{0,79}$/.test(id)

export function placeOf(dataDirectory: string, id: string): Place {
  if (!isSafeId(id)) throw new Error('the environment id is not safe as a file name')
  const directory = join(sandboxesDirectory(dataDirectory), id)
  const key = keyOf(dataDirectory)
  return {
    id,
    directory,
    meta: join(directory, 'meta.json'),
    socket: join(directory, 'guest.sock'),
    config: join(directory, 'jail.cfg'),
    log: join(directory, 'log'),
    pid: join(directory, 'pid'),
    image: join(directory, 'disk.img'),
    box: join(directory, 'box'),
    key,
    cgroup: `${key}.${id}`,
    stage: stageOf(key, id),
  }
}
