import { existsSync } from 'node:fs'
import { mkdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf } from '../../src/errors.ts'
import { codeOf } from '../../src/read/error-code.ts'
import { untilThawed } from './backup/snapshot.ts'
import type { BackendContext } from './context.ts'
import { closeStaging } from './files/staging.ts'
import { erase } from './host/erase.ts'
import { type EnvironmentPaths, type Host, newTrashName, trashDirectory } from './host/layout.ts'
import { emptyCgroups, removeCgroups, removeFormerCgroups } from './jail/cgroup.ts'
import { holdMounts, killJail } from './jail/jail.ts'

type RemovalContext = Pick<BackendContext, 'host' | 'disks' | 'removals'>

/** Ends every process of an environment; its files stay. */
export async function stopJail({ host, disks }: Pick<RemovalContext, 'host' | 'disks'>, paths: EnvironmentPaths) {
  await untilThawed(paths)
  await killJail(paths)
  if (!host.isRoot) return
  closeStaging(paths)
  await clearCgroups(paths)
  if (!(await disks.released(paths.image))) logKept(host, paths)
}

/**
 * Ends an environment's processes and takes its files away. Resolves when no process is left, and the id is free again.
 * `rest` then releases the disk and erases the files; it never rejects. `removals` has it until it is done.
 */
export async function removeEnvironment(
  context: RemovalContext,
  paths: EnvironmentPaths,
): Promise<{ rest: Promise<void> }> {
  const { host, disks, removals } = context
  await untilThawed(paths)
  // The last process would unmount the disk, which would write data that nobody needs any more.
  const held = host.isRoot ? await holdMounts(paths) : undefined
  let trash: string | undefined
  try {
    await killJail(paths)
    if (host.isRoot) {
      // Processes may be left without their nsjail when something else has killed it.
      await emptyCgroups(paths.cgroup)
      closeStaging(paths)
    }
    trash = existsSync(paths.directory) ? await discard(host, paths) : undefined
    disks.moved(paths.image, join(trash ?? paths.directory, 'disk.img'))
  } catch (error) {
    await held?.close()
    throw error
  }
  const release = async () => {
    await held?.close()
    if (host.isRoot) {
      await clearCgroups(paths)
      if (trash !== undefined && !(await disks.released(join(trash, 'disk.img')))) logKept(host, paths)
    }
    if (trash !== undefined) await eraseFiles(trash)
  }
  const rest = release()
    .catch(error => host.log(`erasing ${paths.id}: ${messageOf(error)}`))
    .finally(() => removals.delete(paths.id))
  removals.set(paths.id, rest)
  return { rest }
}

/** Kills what is left in an environment's cgroups, and removes them. */
export async function clearCgroups(paths: EnvironmentPaths): Promise<void> {
  await removeCgroups(paths.cgroup)
  await removeFormerCgroups(paths.id)
}

/**
 * Moves an environment's files to the trash. Returns their new path, or the old one when a full disk has no room for another
 * name.
 */
async function discard({ dataDirectory }: Host, paths: EnvironmentPaths): Promise<string> {
  const trash = join(trashDirectory(dataDirectory), newTrashName(paths.id))
  try {
    await mkdir(trashDirectory(dataDirectory), { recursive: true, mode: 0o700 })
    await rename(paths.directory, trash)
    return trash
  } catch (error) {
    if (codeOf(error) !== 'ENOSPC') throw error
    await eraseFiles(paths.directory)
    return paths.directory
  }
}

/** Erases the directory of an environment. A jail can write only to the image, or to what is in `box`. */
export async function eraseFiles(directory: string): Promise<void> {
  if (existsSync(join(directory, 'box'))) await erase(directory)
  else await rm(directory, { recursive: true, force: true })
}

const logKept = (host: Host, { id }: EnvironmentPaths) =>
  host.log(`the disk of ${id} stays mounted somewhere; another program holds a copy of its mounts`)
