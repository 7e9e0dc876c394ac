import { readdirSync } from 'node:fs'
import { listMountsBelow } from '../host/mounts.ts'
import { isLayerPath } from './layer-path.ts'

/** A directory of the host that jails see read-only at its own path. */
export interface Shown {
  path: string
  /** False when it is bound: the jail then sees the host's inodes. */
  isOverlay: boolean
}

/**
 * Lists how a directory is shown: through an overlay of each jail's own. Locks, leases and watches belong to an inode, so with
 * a bind a jail would see what the host and other jails open, and could hold locks against them. The kernel lays no
 * overlay over mounts that a jail may not take apart: a directory above one is bound, and each directory in it is then
 * shown by itself.
 */
export function showDirectory(path: string, mounts: readonly string[] = listMountsBelow(path)): Shown[] {
  if (isLayerPath(path) && !mounts.some(mount => mount.startsWith(`${path}/`))) return [{ path, isOverlay: true }]
  const entries = readdirSync(path, { withFileTypes: true })
  const inside = entries.filter(entry => entry.isDirectory() && isLayerPath(`${path}/${entry.name}`))
  return [{ path, isOverlay: false }, ...inside.flatMap(({ name }) => showDirectory(`${path}/${name}`, mounts))]
}

/**
 * Whether jails may install programs into /usr/local, which takes an overlay: where something is mounted below it, they
 * see it read-only like the rest of /usr.
 */
export const mayWriteLocal = (): boolean => listMountsBelow('/usr/local').length === 0
